package dev.gpd.consent;

import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;

/** A fake of the client for your tests. It works in memory, allows only what was granted, and is safe for many threads. */
public final class FakeConsent extends AtOnce {
  /**
   * A recorded call.
   *
   * @param args the arguments without the options
   */
  public record Call(String method, List<Object> args) {}

  /** Effect of Global Privacy Control on a purpose. */
  public enum GpcPolicy {
    OPT_OUT,
    ASK,
    IGNORE
  }

  /** Not reached, because a fake answers at once. */
  private static final Duration TIMEOUT = Duration.ofSeconds(2);

  private final OnUnavailable onUnavailable;
  private final List<Call> calls = new ArrayList<>();
  private final FakeLog log = new FakeLog();
  private final Map<String, Verdict> verdicts = new HashMap<>();
  private final Map<String, ReportedOutcome> outcomes = new HashMap<>();
  private final FakeSigner signer = new FakeSigner();
  private final Visitors visitors;
  private Clock clock = Clock.systemUTC();
  private String cookieDomain;
  private boolean isUnavailable;
  private boolean isClosed;

  public FakeConsent() {
    this(OnUnavailable.DENY);
  }

  public FakeConsent(OnUnavailable onUnavailable) {
    this.onUnavailable = onUnavailable;
    this.visitors = new Visitors(remotes(), onUnavailable, () -> cookieDomain, () -> clock.instant());
  }

  /** Sets the clock for the age of cookies; the system's if it was not set. */
  public synchronized void setClock(Clock value) {
    clock = value;
  }

  /** Sets the domain of cookies, as that of the client. */
  public synchronized void setCookieDomain(String domain) {
    cookieDomain = domain;
  }

  /** Returns a {@code Cookie} header as this person's browser would send it now. Later it is as old as the clock says. */
  public synchronized String cookieFor(String principalId) {
    Rules.principal("cookieFor", principalId);
    return SignedState.COOKIE + "=" + signer.sign(principalId, log.visitor(principalId, false), clock.instant());
  }

  private Visitors.Remotes remotes() {
    return new Visitors.Remotes() {
      @Override
      public Question.Remote<StateKeys.KeySet> fetchKeys(String method) {
        return Question.Remote.atOnce(
            () -> {
              requireServer(method);
              return signer.keys();
            });
      }

      @Override
      public Question.Remote<Visitors.Refreshed> refresh(String method, SignedState state, boolean gpc) {
        return Question.Remote.atOnce(() -> renewed(method, state, gpc));
      }

      @Override
      public Question.Remote<List<Decision>> check(String method, List<Check> checks) {
        return Question.Remote.atOnce(() -> checks.stream().map(check -> decide(method, check)).toList());
      }
    };
  }

  private Visitors.Refreshed renewed(String method, SignedState state, boolean gpc) {
    requireServer(method);
    String principalId = signer.principalOf(state);
    FakeLog.VisitorView view = log.visitor(principalId, gpc);
    // gpd does not know a person who has never chosen.
    if (view.seq() == 0) throw notFound(method, "no-data");
    SignedState signed = SignedState.parse(signer.sign(principalId, view, clock.instant()));
    return new Visitors.Refreshed(signed, view.purposes(), view.seq());
  }

  /** All calls, in order. */
  public synchronized List<Call> calls() {
    return List.copyOf(calls);
  }

  /** Makes all further calls fail as if the server were down, or work again. */
  public synchronized void setUnavailable(boolean unavailable) {
    isUnavailable = unavailable;
  }

  /** Sets the effect of Global Privacy Control on a purpose; OPT_OUT if it was not set. */
  public synchronized void setGpcPolicy(String purpose, GpcPolicy policy) {
    log.setGpcPolicy(purpose, policy);
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
    requireServer(method);
  }

  private void requireServer(String method) {
    if (isUnavailable) throw ConsentException.of(method, ErrorKind.NETWORK);
  }

  private Decision decide(String method, Check check) {
    if (!isUnavailable) return log.decide(check.principalId(), check.purpose());
    ConsentException error = ConsentException.of(method, ErrorKind.NETWORK);
    if (onUnavailable == OnUnavailable.ERROR) throw error;
    return Decision.unavailable(error);
  }

  private synchronized Decision check(String method, Check check) {
    Rules.check(method, check);
    called(method, check);
    return decide(method, check);
  }

  private synchronized WriteResult write(String method, ConsentWrite write, CallOptions options) {
    Rules.write(method, write);
    if (options.idempotencyKey() != null) Rules.idempotencyKey(method, options.idempotencyKey());
    reach(method, write);
    return log.write(method, write, options.idempotencyKey());
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
    return write("grant", write, options);
  }

  @Override
  public WriteResult deny(ConsentWrite write, CallOptions options) {
    return write("deny", write, options);
  }

  @Override
  public WriteResult withdraw(ConsentWrite write, CallOptions options) {
    return write("withdraw", write, options);
  }

  @Override
  public synchronized ConsentState state(String principalId, CallOptions options) {
    Rules.principal("state", principalId);
    reach("state", principalId);
    return log.state(principalId);
  }

  @Override
  public synchronized History history(String principalId, History.Page page, CallOptions options) {
    Rules.principal("history", principalId);
    reach("history", principalId, page);
    return log.history(principalId, page);
  }

  @Override
  synchronized Session session(String principalId) {
    Rules.principal("sessions.create", principalId);
    reach("sessions.create", principalId);
    return new Session("gpd_ps_fake" + calls.size(), principalId, FakeLog.TIME);
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
    ReportedOutcome first = new ReportedOutcome(requestId, outcome, at == null ? FakeLog.TIME : at);
    ReportedOutcome stored = outcomes.computeIfAbsent(requestId, id -> first);
    if (!stored.outcome().equals(outcome) || (at != null && !stored.at().equals(at))) {
      throw ConsentException.answered(method, ErrorKind.CONFLICT, "idempotency-conflict", 409, null, null);
    }
    return stored;
  }

  @Override
  public synchronized Optional<VisitorState> readState(String cookieHeader, CallOptions options) {
    called("readState", cookieHeader);
    return Question.await(() -> visitors.readState(cookieHeader), TIMEOUT);
  }

  @Override
  public synchronized CurrentState currentState(String cookieHeader, CallOptions options) {
    called("currentState", cookieHeader);
    return Question.await(() -> visitors.currentState(cookieHeader), TIMEOUT);
  }

  @Override
  public synchronized Permissions may(
      Function<String, String> header, List<String> purposes, String principalId, CallOptions options) {
    Rules.page("may", header, purposes, principalId);
    called("may", header, purposes, principalId);
    return Question.await(() -> visitors.may(header, purposes, principalId), TIMEOUT);
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
