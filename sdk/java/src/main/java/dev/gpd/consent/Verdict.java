package dev.gpd.consent;

import java.util.Map;

/**
 * The verdict of a visit.
 *
 * @param visitorId null when nobody was identified
 * @param suspectScore null if there is none
 * @param restricted a contest is open: do not act on this verdict
 * @param fields the whole answer of the server, with the names of the wire
 */
public record Verdict(
    String requestId,
    String verdictClass,
    String reason,
    String visitorId,
    Double confidence,
    Double suspectScore,
    String decidedAt,
    boolean restricted,
    Map<String, Object> fields) {
  /** A key of the device (`by` `passkey`, `deviceBound`); null where none was proven. */
  public Map<?, ?> attested() {
    return fields.get("attested") instanceof Map<?, ?> attested ? attested : null;
  }

  /** A verdict for your tests: nobody identified, nothing restricted. */
  public static Verdict of(String requestId, String verdictClass) {
    Map<String, Object> fields = Map.of("requestId", requestId, "class", verdictClass);
    return new Verdict(requestId, verdictClass, "ok", null, null, null, "2026-01-01T00:00:00.000Z", false, fields);
  }

  /** The reference that the event decision.erased carries, or null. */
  public String ref() {
    return fields.get("ref") instanceof String ref ? ref : null;
  }

  /** The reason of this visit, as the page named it in identify, such as an order, or null. */
  public String context() {
    return fields.get("context") instanceof String context ? context : null;
  }

  /** Refuses the verdict of another request. */
  static Verdict read(Fields fields, String requestId) {
    if (!fields.text("requestId").equals(requestId)) throw new Fields.Malformed();
    return new Verdict(
        requestId,
        fields.text("class"),
        fields.text("reason"),
        fields.optionalText("visitorId"),
        fields.optionalNumber("confidence"),
        fields.optionalNumber("suspectScore"),
        fields.text("decidedAt"),
        fields.bool("restricted"),
        fields.of());
  }
}
