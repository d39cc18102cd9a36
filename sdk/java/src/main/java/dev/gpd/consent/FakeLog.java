package dev.gpd.consent;

import java.time.Instant;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/** Choices, Global Privacy Control and Idempotency-Keys of a fake, by the rules of the server. */
final class FakeLog {
  /** Always three digits, as gpd writes times: an Instant leaves out those that are zero. */
  private static final DateTimeFormatter MILLISECONDS = new DateTimeFormatterBuilder().appendInstant(3).toFormatter();

  private record Event(
      String principalId, String purpose, String choice, long policyVersion, boolean gpc, ProofRef ref, boolean overGpc, Instant time, Instant expires) {}

  private record Answered(String method, ConsentWrite write, Map<String, Object> result) {}

  /** An answer of another status than 2xx. */
  static final class Refusal extends RuntimeException {
    private static final long serialVersionUID = 1L;
    final int status;

    Refusal(int status, String code) {
      super(code, null, false, false);
      this.status = status;
    }
  }

  private static final Pattern PURPOSE = Pattern.compile("[a-z0-9][a-z0-9-]{0,63}");

  private static final Map<String, String> CHOICES =
      Map.of("grant", "granted", "deny", "denied", "withdraw", "withdrawn");

  private static final ProofRef GENESIS = new ProofRef(0, "0".repeat(64));

  private final Supplier<Instant> now;
  final Map<String, Double> ttlDays = new HashMap<>();
  /** Accounts by the browsers that were joined with them. */
  final Map<String, String> accounts = new HashMap<>();
  private final Set<String> erased = new HashSet<>();
  /** The only purposes; null: every purpose is known. */
  Set<String> known;
  private long entries;
  private long policyVersion;
  /** Grants under an older policy are outdated. */
  private long material;

  FakeLog(Supplier<Instant> now) {
    this.now = now;
  }

  private static String text(Instant time) {
    return MILLISECONDS.format(time);
  }

  String time(long laterSeconds) {
    return text(now.get().plusSeconds(laterSeconds));
  }

  private String personOf(String principalId) {
    return accounts.getOrDefault(principalId, principalId);
  }

  private boolean isOf(Event event, String principalId) {
    return personOf(event.principalId()).equals(personOf(principalId));
  }

  long erase(String principalId) {
    long count = events.stream().filter(one -> isOf(one, principalId)).count();
    events.removeIf(one -> isOf(one, principalId));
    signals.remove(personOf(principalId));
    erased.add(personOf(principalId));
    return count;
  }

  ProofRef nextRef() {
    entries++;
    return new ProofRef(entries, Bytes.hex(Bytes.sha256(Bytes.utf8("fake entry " + entries))));
  }

  Map<String, Object> publish(long version, boolean isMaterial) {
    policyVersion = version;
    if (isMaterial) material = version;
    return wire(nextRef());
  }

  List<Object> purposes() {
    Set<String> ids = new LinkedHashSet<>();
    if (known == null) events.forEach(one -> ids.add(one.purpose()));
    else ids.addAll(known);
    return ids.stream()
        .<Object>map(
            id ->
                Map.of(
                    "id", id, "title", id, "description", "", "lawfulBasis", "consent", "banner", true,
                    "gpc", policyOf(id).name().toLowerCase(Locale.ROOT).replace('_', '-'),
                    "ttlDays", ttlDays.getOrDefault(id, 180.0).longValue()))
        .toList();
  }

  static Map<String, Object> wire(ProofRef ref) {
    return Map.of("seq", ref.seq(), "hash", ref.hash());
  }

  private final List<Event> events = new ArrayList<>();
  private final Map<String, FakeConsent.GpcPolicy> policies = new HashMap<>();

  /** The principals with a GPC signal, and the purposes that each granted without it since. */
  private final Map<String, Set<String>> signals = new HashMap<>();

  private final Map<String, Answered> answers = new HashMap<>();

  void setGpcPolicy(String purpose, FakeConsent.GpcPolicy policy) {
    policies.put(purpose, policy);
  }

  Map<String, Object> write(String method, ConsentWrite write, String idempotencyKey) {
    check(write);
    Answered earlier = answers.get(idempotencyKey);
    if (earlier != null) {
      if (earlier.method().equals(method) && earlier.write().equals(write)) return earlier.result();
      throw new Refusal(409, "idempotency-conflict");
    }
    applySignal(method, write);
    if (method.equals("grant")) erased.remove(personOf(write.principalId()));
    List<Map<String, Object>> written = new ArrayList<>();
    for (String purpose : write.purposes()) {
      Event event = eventOf(method, purpose, write);
      events.add(event);
      Map<String, Object> entry = new HashMap<>(wire(event.ref()));
      entry.put("purpose", purpose);
      written.add(entry);
    }
    Map<String, Object> result = new HashMap<>(written.get(written.size() - 1));
    result.put("entries", written);
    answers.put(idempotencyKey, new Answered(method, write, result));
    return result;
  }

  private void check(ConsentWrite write) {
    List<String> purposes = write.purposes();
    boolean isList = purposes.size() <= 50 && new HashSet<>(purposes).size() == purposes.size();
    boolean isNamed = purposes.stream().allMatch(one -> PURPOSE.matcher(one).matches());
    if (!isList || !isNamed) throw new Refusal(400, "invalid-request");
    if (known != null && !known.containsAll(purposes)) throw new Refusal(422, "unknown-purpose");
    if (!Boolean.TRUE.equals(write.overGpc())) return;
    if (!Boolean.TRUE.equals(write.gpc()) || purposes.size() != 1) throw new Refusal(400, "invalid-request");
    if (policyOf(purposes.get(0)) != FakeConsent.GpcPolicy.ASK) throw new Refusal(422, "unknown-purpose");
  }

  private void applySignal(String method, ConsentWrite write) {
    if (Boolean.TRUE.equals(write.gpc())) {
      signals.put(personOf(write.principalId()), new HashSet<>());
    } else if (Boolean.FALSE.equals(write.gpc()) && method.equals("grant")) {
      Set<String> except = signals.get(personOf(write.principalId()));
      if (except != null) except.addAll(write.purposes());
    }
  }

  private Event eventOf(String method, String purpose, ConsentWrite write) {
    ProofRef ref = nextRef();
    Double days = method.equals("grant") ? ttlDays.get(purpose) : null;
    Instant expires = days == null ? null : now.get().plusSeconds((long) (days * 86_400));
    boolean isSignal =
        method.equals("deny")
            && Boolean.TRUE.equals(write.gpc())
            && policyOf(purpose) != FakeConsent.GpcPolicy.IGNORE;
    String choice = isSignal ? "gpc-opt-out" : CHOICES.get(method);
    long version = write.policyVersion() == null ? policyVersion : write.policyVersion();
    boolean gpc = isOptedOut(write.principalId(), purpose);
    boolean over = Boolean.TRUE.equals(write.overGpc());
    return new Event(write.principalId(), purpose, choice, version, gpc, ref, over, now.get(), expires);
  }

  private FakeConsent.GpcPolicy policyOf(String purpose) {
    return policies.getOrDefault(purpose, FakeConsent.GpcPolicy.OPT_OUT);
  }

  private boolean isOptedOut(String principalId, String purpose) {
    Set<String> except = signals.get(personOf(principalId));
    return except != null && !except.contains(purpose);
  }

  private Event last(String principalId, String purpose) {
    for (int i = events.size() - 1; i >= 0; i--) {
      Event one = events.get(i);
      if (isOf(one, principalId) && one.purpose().equals(purpose)) return one;
    }
    return null;
  }

  /** True if a signal ends this choice: it heeds the signal, and was not made despite it. */
  private boolean isOverruledByGpc(String purpose, Event last) {
    FakeConsent.GpcPolicy policy = policyOf(purpose);
    boolean isDespite = policy == FakeConsent.GpcPolicy.ASK && last != null && last.overGpc();
    return policy != FakeConsent.GpcPolicy.IGNORE && !isDespite;
  }

  /** What the cookie of a person says. */
  record VisitorView(List<String> purposes, long seq) {}

  /** @param gpc under a signal of this request */
  VisitorView visitor(String principalId, boolean gpc) {
    Set<String> purposes = new LinkedHashSet<>();
    long seq = 0;
    for (Event one : events) {
      if (!isOf(one, principalId)) continue;
      seq = one.ref().seq();
      purposes.add(one.purpose());
    }
    List<String> allowed =
        purposes.stream()
            .filter(purpose -> Boolean.TRUE.equals(decide(principalId, purpose).get("allowed")))
            .filter(purpose -> !(gpc && isOverruledByGpc(purpose, last(principalId, purpose))))
            .toList();
    return new VisitorView(allowed, seq);
  }

  private String reasonOf(String principalId, String purpose, Event last) {
    if (known != null && !known.contains(purpose)) return "unknown-purpose";
    if (last == null && erased.contains(personOf(principalId))) return "erased";
    if (isOptedOut(principalId, purpose) && isOverruledByGpc(purpose, last)) return "gpc-opt-out";
    if (last == null || last.choice().equals("gpc-opt-out")) return "never-asked";
    if (!last.choice().equals("granted")) return last.choice();
    if (last.expires() != null && !now.get().isBefore(last.expires())) return "expired";
    return last.policyVersion() < material ? "policy-outdated" : "granted";
  }

  Map<String, Object> decide(String principalId, String purpose) {
    Event last = last(principalId, purpose);
    String reason = reasonOf(principalId, purpose, last);
    boolean isProven = last != null && !reason.equals("never-asked");
    ProofRef head = events.isEmpty() ? GENESIS : events.get(events.size() - 1).ref();
    Map<String, Object> decision = new HashMap<>();
    decision.put("allowed", reason.equals("granted"));
    decision.put("reason", reason);
    decision.put("proof", wire(isProven ? last.ref() : head));
    decision.put("policyVersion", isProven ? last.policyVersion() : policyVersion);
    decision.put("expiresAt", isProven && last.expires() != null ? text(last.expires()) : null);
    decision.put("given", "unknown");
    return decision;
  }

  List<Object> state(String principalId) {
    Set<String> purposes = new LinkedHashSet<>();
    for (Event one : events) if (isOf(one, principalId)) purposes.add(one.purpose());
    List<Object> states = new ArrayList<>();
    for (String purpose : purposes) {
      Event last = last(principalId, purpose);
      Map<String, Object> state = decide(principalId, purpose);
      state.put("purpose", purpose);
      state.put("choice", last.choice());
      state.put("at", text(last.time()));
      states.add(state);
    }
    return states;
  }

  /** Returns the events before the cursor, newest first. */
  Map<String, Object> history(String principalId, String cursor, long limit) {
    boolean isPage = limit >= 1 && limit <= 200 && (cursor == null || cursor.matches("\\d{1,16}"));
    if (!isPage) throw new Refusal(400, "invalid-request");
    long before = cursor == null ? Long.MAX_VALUE : Long.parseLong(cursor);
    List<Event> found = new ArrayList<>();
    for (Event one : events) if (isOf(one, principalId) && one.ref().seq() < before) found.add(0, one);
    List<Event> shown = found.subList(0, (int) Math.min(limit, found.size()));
    Map<String, Object> history = new HashMap<>();
    history.put("principalId", principalId);
    history.put("events", shown.stream().map(FakeLog::told).toList());
    boolean isMore = found.size() > shown.size();
    history.put("nextCursor", isMore ? String.valueOf(shown.get(shown.size() - 1).ref().seq()) : null);
    return history;
  }

  private static Map<String, Object> told(Event one) {
    Map<String, Object> event = new HashMap<>();
    event.put("seq", one.ref().seq());
    event.put("type", "consent." + one.choice());
    event.put("purpose", one.purpose());
    event.put("time", text(one.time()));
    event.put("policyVersion", one.policyVersion());
    event.put("gpc", one.gpc());
    event.put("source", "backend");
    event.put("expiresAt", one.expires() == null ? null : text(one.expires()));
    if (one.overGpc()) event.put("overGpc", true);
    return event;
  }
}
