package dev.gpd.consent;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A fake of the client for your tests. It works in memory, allows only what was granted, and is safe for many threads. */
public final class FakeConsent extends AtOnce {
  /**
   * A recorded call.
   *
   * @param args the arguments without the options
   */
  public record Call(String method, List<Object> args) {}

  private record Event(
      String principalId, String purpose, String choice, long policyVersion, boolean gpc, ProofRef ref, boolean overGpc) {}

  private static final ProofRef GENESIS = new ProofRef(0, "0".repeat(64));

  /** A fixed time, so that no test depends on the date. */
  private static final String TIME = "2026-01-01T00:00:00.000Z";

  private final OnUnavailable onUnavailable;
  private final List<Call> calls = new ArrayList<>();
  private final List<Event> events = new ArrayList<>();
  private final Map<String, Verdict> verdicts = new HashMap<>();
  private final Map<String, ReportedOutcome> outcomes = new HashMap<>();
  private boolean isUnavailable;
  private boolean isClosed;

  public FakeConsent() {
    this(OnUnavailable.DENY);
  }

  public FakeConsent(OnUnavailable onUnavailable) {
    this.onUnavailable = onUnavailable;
  }

  /** All calls, in order. */
  public synchronized List<Call> calls() {
    return List.copyOf(calls);
  }

  /** Makes all further calls fail as if the server were down, or work again. */
  public synchronized void setUnavailable(boolean unavailable) {
    isUnavailable = unavailable;
  }

  /** Sets the verdict that {@link #decision} returns for this request. */
  public synchronized void setDecision(String requestId, Verdict verdict) {
    verdicts.put(requestId, verdict);
  }

  private void called(String method, Object... args) {
    if (isClosed) throw ConsentException.of(method, ErrorKind.CONFIG, "closed");
    calls.add(new Call(method, Arrays.asList(args)));
  }

  private void reach(String method, Object... args) {
    called(method, args);
    if (isUnavailable) throw ConsentException.of(method, ErrorKind.NETWORK);
  }

  private Event last(String principalId, String purpose) {
    for (int i = events.size() - 1; i >= 0; i--) {
      Event one = events.get(i);
      if (one.principalId().equals(principalId) && one.purpose().equals(purpose)) return one;
    }
    return null;
  }

  private Decision judge(String principalId, String purpose) {
    Event last = last(principalId, purpose);
    if (last == null) {
      ProofRef ref = events.isEmpty() ? GENESIS : events.get(events.size() - 1).ref();
      return new Decision(false, "never-asked", ref, 0L, null, null);
    }
    boolean allowed = last.choice().equals("granted");
    return new Decision(allowed, last.choice(), last.ref(), last.policyVersion(), null, null);
  }

  private Decision decide(String method, Check check) {
    if (!isUnavailable) return judge(check.principalId(), check.purpose());
    ConsentException error = ConsentException.of(method, ErrorKind.NETWORK);
    if (onUnavailable == OnUnavailable.ERROR) throw error;
    return Decision.unavailable(error);
  }

  private synchronized Decision check(String method, Check check) {
    Rules.check(method, check);
    called(method, check);
    return decide(method, check);
  }

  private synchronized WriteResult write(String method, String choice, ConsentWrite write, CallOptions options) {
    Rules.write(method, write);
    if (options.idempotencyKey() != null) Rules.idempotencyKey(method, options.idempotencyKey());
    reach(method, write);
    List<WriteResult.Entry> entries = new ArrayList<>();
    for (String purpose : write.purposes()) {
      long seq = events.size() + 1L;
      ProofRef ref = new ProofRef(seq, Bytes.hex(Bytes.sha256(Bytes.utf8("fake entry " + seq))));
      long version = write.policyVersion() == null ? 0 : write.policyVersion();
      boolean gpc = Boolean.TRUE.equals(write.gpc());
      events.add(new Event(write.principalId(), purpose, choice, version, gpc, ref, Boolean.TRUE.equals(write.overGpc())));
      entries.add(new WriteResult.Entry(purpose, seq, ref.hash()));
    }
    WriteResult.Entry last = entries.get(entries.size() - 1);
    return new WriteResult(List.copyOf(entries), last.seq(), last.hash());
  }

  @Override
  public boolean isAllowed(Check check, CallOptions options) {
    return check("isAllowed", check).allowed();
  }

  @Override
  public Decision canProcess(Check check, CallOptions options) {
    return check("canProcess", check);
  }

  @Override
  public synchronized List<Decision> canProcessMany(List<Check> checks, CallOptions options) {
    Rules.batch("canProcessMany", checks);
    called("canProcessMany", checks);
    return checks.stream().map(check -> decide("canProcessMany", check)).toList();
  }

  @Override
  public WriteResult grant(ConsentWrite write, CallOptions options) {
    return write("grant", "granted", write, options);
  }

  @Override
  public WriteResult deny(ConsentWrite write, CallOptions options) {
    return write("deny", "denied", write, options);
  }

  @Override
  public WriteResult withdraw(ConsentWrite write, CallOptions options) {
    return write("withdraw", "withdrawn", write, options);
  }

  @Override
  public synchronized ConsentState state(String principalId, CallOptions options) {
    Rules.principal("state", principalId);
    reach("state", principalId);
    Set<String> purposes = new LinkedHashSet<>();
    for (Event one : events) if (one.principalId().equals(principalId)) purposes.add(one.purpose());
    return new ConsentState(principalId, purposes.stream().map(purpose -> stateOf(principalId, purpose)).toList());
  }

  private ConsentState.PurposeState stateOf(String principalId, String purpose) {
    Decision decision = judge(principalId, purpose);
    return new ConsentState.PurposeState(purpose, decision.reason(), TIME, decision);
  }

  @Override
  public synchronized History history(String principalId, History.Page page, CallOptions options) {
    Rules.principal("history", principalId);
    reach("history", principalId, page);
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

  @Override
  synchronized Session session(String principalId) {
    Rules.principal("sessions.create", principalId);
    reach("sessions.create", principalId);
    return new Session("gpd_ps_fake" + calls.size(), principalId, TIME);
  }

  private static ConsentException notFound(String method, String code) {
    return ConsentException.answered(method, ErrorKind.NOT_FOUND, code, 404, null, null);
  }

  /** Always fails with not-found, because the fake has no log. */
  @Override
  public synchronized Receipt receipt(long seq, CallOptions options) {
    Rules.seq("receipt", seq);
    reach("receipt", seq);
    throw notFound("receipt", "not-found");
  }

  /** Always fails with not-found, because the fake has no log. */
  @Override
  public synchronized String proof(long seq, CallOptions options) {
    Rules.seq("proof", seq);
    reach("proof", seq);
    throw notFound("proof", "not-found");
  }

  @Override
  public synchronized Verdict decision(String requestId, CallOptions options) {
    Rules.requestId("decision", requestId);
    reach("decision", requestId);
    return verdictOf("decision", requestId);
  }

  private Verdict verdictOf(String method, String requestId) {
    Verdict verdict = verdicts.get(requestId);
    if (verdict == null) throw notFound(method, "no-such-decision");
    return verdict;
  }

  /** Stores the outcome of a decision of {@link #setDecision}; times are compared as texts. */
  @Override
  public synchronized ReportedOutcome reportOutcome(String requestId, String outcome, String at, CallOptions options) {
    String method = "reportOutcome";
    Rules.report(method, requestId, outcome);
    reach(method, requestId, outcome, at);
    verdictOf(method, requestId);
    ReportedOutcome first = new ReportedOutcome(requestId, outcome, at == null ? TIME : at);
    ReportedOutcome stored = outcomes.computeIfAbsent(requestId, id -> first);
    if (!stored.outcome().equals(outcome) || (at != null && !stored.at().equals(at))) {
      throw ConsentException.answered(method, ErrorKind.CONFLICT, "idempotency-conflict", 409, null, null);
    }
    return stored;
  }

  @Override
  public synchronized Health ping(CallOptions options) {
    reach("ping");
    return new Health("ok", "fake " + ConsentClient.VERSION);
  }

  @Override
  public synchronized void close() {
    isClosed = true;
  }
}
