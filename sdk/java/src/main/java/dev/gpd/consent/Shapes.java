package dev.gpd.consent;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** Checks the shape of answers. Each reader throws {@link Fields.Malformed} for a malformed answer. */
final class Shapes {
  private Shapes() {}

  private static <T> List<T> each(Fields fields, String name, Function<Fields, T> shape) {
    List<T> items = new ArrayList<>();
    for (Object item : fields.list(name)) items.add(shape.apply(Fields.ofValue(item)));
    return List.copyOf(items);
  }

  /** Decisions by id; null for an id that appears twice or whose decision is malformed. */
  static Map<String, Decision> batch(Fields fields) {
    Map<String, Decision> found = new HashMap<>();
    for (Object item : fields.list("results")) {
      if (!(item instanceof Map<?, ?> result) || !(result.get("id") instanceof String id)) continue;
      found.put(id, found.containsKey(id) ? null : decisionOrNull(item));
    }
    return found;
  }

  private static Decision decisionOrNull(Object item) {
    try {
      return Fields.ofValue(item).decision();
    } catch (Fields.Malformed malformed) {
      return null;
    }
  }

  static WriteResult writeResult(Fields fields) {
    List<WriteResult.Entry> entries =
        each(fields, "entries", one -> new WriteResult.Entry(one.text("purpose"), one.seq(), one.hash()));
    return new WriteResult(entries, fields.seq(), fields.hash());
  }

  static ConsentState state(Fields fields) {
    return new ConsentState(
        fields.text("principalId"),
        each(
            fields,
            "purposes",
            one ->
                new ConsentState.PurposeState(
                    one.text("purpose"), one.textOrNull("choice"), one.textOrNull("at"), one.decision())));
  }

  static History history(Fields fields) {
    return new History(
        fields.text("principalId"), each(fields, "events", Shapes::event), fields.textOrNull("nextCursor"));
  }

  private static History.Event event(Fields one) {
    return new History.Event(
        one.seq(),
        one.text("type"),
        one.text("purpose"),
        one.text("time"),
        one.optionalInteger("policyVersion"),
        one.bool("gpc"),
        one.text("source"),
        one.optionalText("expiresAt"),
        one.optionalTrue("overGpc"));
  }

  static Session session(Fields fields) {
    return new Session(fields.text("token"), fields.text("principalId"), fields.text("expiresAt"));
  }

  static Receipt receipt(Fields fields) {
    return new Receipt(fields.object("receipt").of(), fields.text("jws"), fields.object("jwk").of());
  }

  private static String equal(String told, String asked) {
    if (!told.equals(asked)) throw new Fields.Malformed();
    return told;
  }

  /** Refuses the verdict of another request. */
  static Verdict verdict(Fields fields, String requestId) {
    return new Verdict(
        equal(fields.text("requestId"), requestId),
        fields.text("class"),
        fields.text("reason"),
        fields.optionalText("visitorId"),
        fields.optionalNumber("confidence"),
        fields.optionalNumber("suspectScore"),
        fields.text("decidedAt"),
        fields.bool("restricted"),
        fields.of());
  }

  /** Refuses an outcome that differs from the report. */
  static ReportedOutcome outcome(Fields fields, String requestId, String outcome) {
    return new ReportedOutcome(
        equal(fields.text("requestId"), requestId), equal(fields.text("outcome"), outcome), fields.text("at"));
  }

  static Health health(Fields fields) {
    if (!fields.text("status").equals("ok")) throw new Fields.Malformed();
    return new Health("ok", fields.text("version"));
  }
}
