package dev.gpd.consent;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Choices, Global Privacy Control and Idempotency-Keys of a fake, by the rules of the server. */
final class FakeLog {
  private record Event(
      String principalId, String purpose, String choice, long policyVersion, boolean gpc, ProofRef ref, boolean overGpc) {}

  private record Answered(String method, ConsentWrite write, WriteResult result) {}

  private static final Map<String, String> CHOICES =
      Map.of("grant", "granted", "deny", "denied", "withdraw", "withdrawn");

  private static final ProofRef GENESIS = new ProofRef(0, "0".repeat(64));

  /** A fixed time, so that no test depends on the date. */
  static final String TIME = "2026-01-01T00:00:00.000Z";

  private final List<Event> events = new ArrayList<>();
  private final Map<String, FakeConsent.GpcPolicy> policies = new HashMap<>();

  /** The principals with a GPC signal, and the purposes that each granted without it since. */
  private final Map<String, Set<String>> signals = new HashMap<>();

  private final Map<String, Answered> answers = new HashMap<>();

  void setGpcPolicy(String purpose, FakeConsent.GpcPolicy policy) {
    policies.put(purpose, policy);
  }

  WriteResult write(String method, ConsentWrite write, String idempotencyKey) {
    checkOverGpc(method, write);
    Answered known = idempotencyKey == null ? null : answers.get(idempotencyKey);
    if (known != null) {
      if (known.method().equals(method) && known.write().equals(write)) return known.result();
      throw ConsentException.answered(method, ErrorKind.CONFLICT, "idempotency-conflict", 409, null, null);
    }
    applySignal(method, write);
    List<WriteResult.Entry> entries = new ArrayList<>();
    for (String purpose : write.purposes()) {
      Event event = eventOf(method, purpose, write);
      events.add(event);
      entries.add(new WriteResult.Entry(purpose, event.ref().seq(), event.ref().hash()));
    }
    WriteResult.Entry last = entries.get(entries.size() - 1);
    WriteResult result = new WriteResult(List.copyOf(entries), last.seq(), last.hash());
    if (idempotencyKey != null) answers.put(idempotencyKey, new Answered(method, write, result));
    return result;
  }

  private void checkOverGpc(String method, ConsentWrite write) {
    if (!Boolean.TRUE.equals(write.overGpc())) return;
    if (!Boolean.TRUE.equals(write.gpc()) || write.purposes().size() != 1) {
      throw ConsentException.answered(method, ErrorKind.INVALID_REQUEST, "invalid-request", 400, null, null);
    }
    if (policyOf(write.purposes().get(0)) != FakeConsent.GpcPolicy.ASK) {
      throw ConsentException.answered(method, ErrorKind.INVALID_REQUEST, "unknown-purpose", 422, null, null);
    }
  }

  private void applySignal(String method, ConsentWrite write) {
    if (Boolean.TRUE.equals(write.gpc())) {
      signals.put(write.principalId(), new HashSet<>());
    } else if (Boolean.FALSE.equals(write.gpc()) && method.equals("grant")) {
      Set<String> except = signals.get(write.principalId());
      if (except != null) except.addAll(write.purposes());
    }
  }

  private Event eventOf(String method, String purpose, ConsentWrite write) {
    long seq = events.size() + 1L;
    ProofRef ref = new ProofRef(seq, Bytes.hex(Bytes.sha256(Bytes.utf8("fake entry " + seq))));
    boolean isSignal =
        method.equals("deny")
            && Boolean.TRUE.equals(write.gpc())
            && policyOf(purpose) != FakeConsent.GpcPolicy.IGNORE;
    String choice = isSignal ? "gpc-opt-out" : CHOICES.get(method);
    long version = write.policyVersion() == null ? 0 : write.policyVersion();
    boolean gpc = isOptedOut(write.principalId(), purpose);
    boolean over = Boolean.TRUE.equals(write.overGpc());
    return new Event(write.principalId(), purpose, choice, version, gpc, ref, over);
  }

  private FakeConsent.GpcPolicy policyOf(String purpose) {
    return policies.getOrDefault(purpose, FakeConsent.GpcPolicy.OPT_OUT);
  }

  private boolean isOptedOut(String principalId, String purpose) {
    Set<String> except = signals.get(principalId);
    return except != null && !except.contains(purpose);
  }

  private Event last(String principalId, String purpose) {
    for (int i = events.size() - 1; i >= 0; i--) {
      Event one = events.get(i);
      if (one.principalId().equals(principalId) && one.purpose().equals(purpose)) return one;
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
      if (!one.principalId().equals(principalId)) continue;
      seq = one.ref().seq();
      purposes.add(one.purpose());
    }
    List<String> allowed =
        purposes.stream()
            .filter(purpose -> decide(principalId, purpose).allowed())
            .filter(purpose -> !(gpc && isOverruledByGpc(purpose, last(principalId, purpose))))
            .toList();
    return new VisitorView(allowed, seq);
  }

  private String reasonOf(String principalId, String purpose, Event last) {
    if (isOptedOut(principalId, purpose) && isOverruledByGpc(purpose, last)) return "gpc-opt-out";
    return last == null || last.choice().equals("gpc-opt-out") ? "never-asked" : last.choice();
  }

  Decision decide(String principalId, String purpose) {
    Event last = last(principalId, purpose);
    String reason = reasonOf(principalId, purpose, last);
    boolean isProven = last != null && !reason.equals("never-asked");
    ProofRef head = events.isEmpty() ? GENESIS : events.get(events.size() - 1).ref();
    ProofRef ref = isProven ? last.ref() : head;
    return new Decision(reason.equals("granted"), reason, ref, isProven ? last.policyVersion() : 0L, null, null);
  }

  ConsentState state(String principalId) {
    Set<String> purposes = new LinkedHashSet<>();
    for (Event one : events) if (one.principalId().equals(principalId)) purposes.add(one.purpose());
    return new ConsentState(principalId, purposes.stream().map(purpose -> stateOf(principalId, purpose)).toList());
  }

  private ConsentState.PurposeState stateOf(String principalId, String purpose) {
    String choice = last(principalId, purpose).choice();
    return new ConsentState.PurposeState(purpose, choice, TIME, decide(principalId, purpose));
  }

  /** Returns the events before the cursor, newest first. */
  History history(String principalId, History.Page page) {
    int limit = page.limit() == null ? 50 : page.limit();
    long before = page.cursor() == null ? Long.MAX_VALUE : Long.parseLong(page.cursor());
    List<History.Event> found = new ArrayList<>();
    for (Event one : events) {
      boolean isAsked = one.principalId().equals(principalId) && one.ref().seq() < before;
      if (isAsked) found.add(0, told(one));
    }
    boolean isMore = found.size() > limit;
    List<History.Event> shown = List.copyOf(isMore ? found.subList(0, limit) : found);
    return new History(principalId, shown, isMore ? String.valueOf(shown.get(limit - 1).seq()) : null);
  }

  private static History.Event told(Event one) {
    String type = "consent." + one.choice();
    return new History.Event(
        one.ref().seq(), type, one.purpose(), TIME, one.policyVersion(), one.gpc(), "backend", null, one.overGpc());
  }
}
