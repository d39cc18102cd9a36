package dev.gpd.consent;

import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;

/**
 * The interface of the client and the fake. Let your own code depend on it. Every method throws {@link ConsentException}; its twin with
 * {@code Async} completes with it. Interrupting the thread, or cancelling the future, ends a call at once.
 */
public interface Consent extends AutoCloseable {
  /** Returns true only if the server's decision allows this processing. */
  default boolean isAllowed(String principalId, String purpose) {
    return isAllowed(Check.of(principalId, purpose), CallOptions.NONE);
  }

  boolean isAllowed(Check check, CallOptions options);

  default CompletableFuture<Boolean> isAllowedAsync(String principalId, String purpose) {
    return isAllowedAsync(Check.of(principalId, purpose), CallOptions.NONE);
  }

  CompletableFuture<Boolean> isAllowedAsync(Check check, CallOptions options);

  /** Returns the decision with its reason and proof. */
  default Decision canProcess(String principalId, String purpose) {
    return canProcess(Check.of(principalId, purpose), CallOptions.NONE);
  }

  Decision canProcess(Check check, CallOptions options);

  default CompletableFuture<Decision> canProcessAsync(String principalId, String purpose) {
    return canProcessAsync(Check.of(principalId, purpose), CallOptions.NONE);
  }

  CompletableFuture<Decision> canProcessAsync(Check check, CallOptions options);

  /** Returns up to 100 decisions of one snapshot, in the order of the checks. A check with {@code minSeq} is refused. */
  default List<Decision> canProcessMany(List<Check> checks) {
    return canProcessMany(checks, CallOptions.NONE);
  }

  List<Decision> canProcessMany(List<Check> checks, CallOptions options);

  default CompletableFuture<List<Decision>> canProcessManyAsync(List<Check> checks) {
    return canProcessManyAsync(checks, CallOptions.NONE);
  }

  CompletableFuture<List<Decision>> canProcessManyAsync(List<Check> checks, CallOptions options);

  default WriteResult grant(ConsentWrite write) {
    return grant(write, CallOptions.NONE);
  }

  WriteResult grant(ConsentWrite write, CallOptions options);

  default CompletableFuture<WriteResult> grantAsync(ConsentWrite write) {
    return grantAsync(write, CallOptions.NONE);
  }

  CompletableFuture<WriteResult> grantAsync(ConsentWrite write, CallOptions options);

  default WriteResult deny(ConsentWrite write) {
    return deny(write, CallOptions.NONE);
  }

  WriteResult deny(ConsentWrite write, CallOptions options);

  default CompletableFuture<WriteResult> denyAsync(ConsentWrite write) {
    return denyAsync(write, CallOptions.NONE);
  }

  CompletableFuture<WriteResult> denyAsync(ConsentWrite write, CallOptions options);

  /** After it has returned, every further check is denied, on every node. */
  default WriteResult withdraw(ConsentWrite write) {
    return withdraw(write, CallOptions.NONE);
  }

  WriteResult withdraw(ConsentWrite write, CallOptions options);

  default CompletableFuture<WriteResult> withdrawAsync(ConsentWrite write) {
    return withdrawAsync(write, CallOptions.NONE);
  }

  CompletableFuture<WriteResult> withdrawAsync(ConsentWrite write, CallOptions options);

  /** Returns a person's latest choice for each purpose. */
  default ConsentState state(String principalId) {
    return state(principalId, CallOptions.NONE);
  }

  ConsentState state(String principalId, CallOptions options);

  default CompletableFuture<ConsentState> stateAsync(String principalId) {
    return stateAsync(principalId, CallOptions.NONE);
  }

  CompletableFuture<ConsentState> stateAsync(String principalId, CallOptions options);

  /** Returns a person's choices, newest first. */
  default History history(String principalId) {
    return history(principalId, History.Page.FIRST, CallOptions.NONE);
  }

  History history(String principalId, History.Page page, CallOptions options);

  default CompletableFuture<History> historyAsync(String principalId) {
    return historyAsync(principalId, History.Page.FIRST, CallOptions.NONE);
  }

  CompletableFuture<History> historyAsync(String principalId, History.Page page, CallOptions options);

  /** Returns all choices of a person, newest first; each page is asked for when it is needed. */
  default Stream<History.Event> historyAll(String principalId) {
    return historyAll(principalId, null, CallOptions.NONE);
  }

  /** @param limit size of a page, or null */
  default Stream<History.Event> historyAll(String principalId, Integer limit, CallOptions options) {
    History first = history(principalId, new History.Page(null, limit), options);
    UnaryOperator<History> next =
        page -> page.nextCursor() == null ? null : history(principalId, new History.Page(page.nextCursor(), limit), options);
    return Stream.iterate(first, Objects::nonNull, next).flatMap(page -> page.events().stream());
  }

  Sessions sessions();

  /** Joins a browser with the account of a session: from then on each answers for both. */
  default Join join(String session, String principalId, String principalSecret) {
    return join(session, principalId, principalSecret, CallOptions.NONE);
  }

  Join join(String session, String principalId, String principalSecret, CallOptions options);

  CompletableFuture<Join> joinAsync(String session, String principalId, String principalSecret, CallOptions options);

  /** Links the visit behind a transparency token with the person of a session. */
  default Link link(String session, String token) {
    return link(session, token, CallOptions.NONE);
  }

  Link link(String session, String token, CallOptions options);

  CompletableFuture<Link> linkAsync(String session, String token, CallOptions options);

  /** Erases the consent record of the person of a session. */
  default ErasureReceipt erase(String session) {
    return erase(session, CallOptions.NONE);
  }

  ErasureReceipt erase(String session, CallOptions options);

  CompletableFuture<ErasureReceipt> eraseAsync(String session, CallOptions options);

  /** Returns the purposes of the tenant. */
  List<Purpose> purposes(CallOptions options);

  CompletableFuture<List<Purpose>> purposesAsync(CallOptions options);

  /**
   * Defines or changes purposes; it needs a key of scope operator.
   *
   * @param material false: the changes ask nobody again; null for the default of gpd
   */
  SavedPurposes savePurposes(List<PurposeDefinition> purposes, Boolean material, CallOptions options);

  CompletableFuture<SavedPurposes> savePurposesAsync(List<PurposeDefinition> purposes, Boolean material, CallOptions options);

  /** Returns the policy versions of the tenant. */
  List<Policy> policies(CallOptions options);

  CompletableFuture<List<Policy>> policiesAsync(CallOptions options);

  /** Publishes the next policy version; it needs a key of scope operator. {@code material}: everybody is asked again. */
  PublishedPolicy publishPolicy(String text, boolean material, CallOptions options);

  CompletableFuture<PublishedPolicy> publishPolicyAsync(String text, boolean material, CallOptions options);

  /** Returns the signed head of the tenant's log. */
  String checkpoint(CallOptions options);

  CompletableFuture<String> checkpointAsync(CallOptions options);

  /** Returns the key that verifies checkpoints and proofs. Pin it: store it where gpd cannot change it. */
  String vkey(CallOptions options);

  CompletableFuture<String> vkeyAsync(CallOptions options);

  /** Returns all entries of the log, one JSON value a line; at most 256 MiB. */
  String exportLog(CallOptions options);

  CompletableFuture<String> exportLogAsync(CallOptions options);

  /** Creates tokens for people's browsers. */
  interface Sessions {
    /** Creates a token for one person, valid for at most 15 minutes. Give it only to that person's browser. */
    default Session create(String principalId) {
      return create(principalId, CallOptions.NONE);
    }

    Session create(String principalId, CallOptions options);

    default CompletableFuture<Session> createAsync(String principalId) {
      return createAsync(principalId, CallOptions.NONE);
    }

    CompletableFuture<Session> createAsync(String principalId, CallOptions options);
  }

  /** Returns a signed copy of an entry, for the person it is about. */
  default Receipt receipt(long seq) {
    return receipt(seq, CallOptions.NONE);
  }

  Receipt receipt(long seq, CallOptions options);

  default CompletableFuture<Receipt> receiptAsync(long seq) {
    return receiptAsync(seq, CallOptions.NONE);
  }

  CompletableFuture<Receipt> receiptAsync(long seq, CallOptions options);

  /** Returns the proof of an entry as text, for {@link Proofs#verify} or an auditor. */
  default String proof(long seq) {
    return proof(seq, CallOptions.NONE);
  }

  String proof(long seq, CallOptions options);

  default CompletableFuture<String> proofAsync(long seq) {
    return proofAsync(seq, CallOptions.NONE);
  }

  CompletableFuture<String> proofAsync(long seq, CallOptions options);

  /** Returns the verdict of a visit. A browser must not deliver its own verdict. */
  default Verdict decision(String requestId) {
    return decision(requestId, CallOptions.NONE);
  }

  Verdict decision(String requestId, CallOptions options);

  default CompletableFuture<Verdict> decisionAsync(String requestId) {
    return decisionAsync(requestId, CallOptions.NONE);
  }

  CompletableFuture<Verdict> decisionAsync(String requestId, CallOptions options);

  /** As {@link #checkout(String, String, Duration)}, with half a second. */
  default Advice checkout(String requestId, String context) {
    return checkout(requestId, context, Duration.ofMillis(500));
  }

  /**
   * Advises a checkout by the verdict of this visit, and never refuses. {@code NO_VERDICT} if gpd has none of the last 30 minutes or does
   * not answer in time: the sale goes on without gpd. No error of gpd is thrown.
   *
   * @param requestId what the page sent; any text, or null
   * @param context the order, as the page named it in {@code identify({context})}: a verdict for another is none; null compares nothing
   */
  Advice checkout(String requestId, String context, Duration deadline);

  CompletableFuture<Advice> checkoutAsync(String requestId, String context, Duration deadline);

  /**
   * Returns who signed a request. Ask once for each: a nonce is used up by the first that asks. A request without signature needs no call.
   * If gpd cannot be asked, nobody is verified: {@code unverified}, {@code unavailable}.
   */
  default AgentAnswer agent(AgentRequest request) {
    return agent(request, CallOptions.NONE);
  }

  AgentAnswer agent(AgentRequest request, CallOptions options);

  CompletableFuture<AgentAnswer> agentAsync(AgentRequest request, CallOptions options);

  /**
   * Reports the outcome of a decision once. Repeating it changes nothing; a different outcome is a conflict.
   *
   * @param outcome {@code fraud}, {@code chargeback}, {@code passed-step-up}, {@code false-alarm} or {@code other}
   */
  default ReportedOutcome reportOutcome(String requestId, String outcome) {
    return reportOutcome(requestId, outcome, null, CallOptions.NONE);
  }

  /**
   * @param at time when it became known (RFC 3339); null for the time of the report
   */
  ReportedOutcome reportOutcome(String requestId, String outcome, String at, CallOptions options);

  default CompletableFuture<ReportedOutcome> reportOutcomeAsync(String requestId, String outcome) {
    return reportOutcomeAsync(requestId, outcome, null, CallOptions.NONE);
  }

  CompletableFuture<ReportedOutcome> reportOutcomeAsync(
      String requestId, String outcome, String at, CallOptions options);

  /** Returns what the cookie {@code gpd_consent} says, offline but for gpd's keys; empty denies. */
  default Optional<VisitorState> readState(String cookieHeader) {
    return readState(cookieHeader, CallOptions.NONE);
  }

  /** @param cookieHeader value of the header {@code Cookie}, or null */
  Optional<VisitorState> readState(String cookieHeader, CallOptions options);

  default CompletableFuture<Optional<VisitorState>> readStateAsync(String cookieHeader) {
    return readStateAsync(cookieHeader, CallOptions.NONE);
  }

  CompletableFuture<Optional<VisitorState>> readStateAsync(String cookieHeader, CallOptions options);

  /** Like {@link #readState}, but asks gpd to renew a cookie that is older than five minutes. */
  default CurrentState currentState(String cookieHeader) {
    return currentState(cookieHeader, CallOptions.NONE);
  }

  CurrentState currentState(String cookieHeader, CallOptions options);

  default CompletableFuture<CurrentState> currentStateAsync(String cookieHeader) {
    return currentStateAsync(cookieHeader, CallOptions.NONE);
  }

  CompletableFuture<CurrentState> currentStateAsync(String cookieHeader, CallOptions options);

  /** Returns which purposes are allowed for the page that this request asks for. It heeds {@code Sec-GPC}. */
  default Permissions may(Function<String, String> header, List<String> purposes) {
    return may(header, purposes, null, CallOptions.NONE);
  }

  /** As before, for somebody who is signed in. */
  default Permissions may(Function<String, String> header, List<String> purposes, String principalId) {
    return may(header, purposes, principalId, CallOptions.NONE);
  }

  /**
   * @param header the value of a header by its name, or null, such as {@code request::getHeader}
   * @param principalId your own id of the person who is signed in, whose account gpd is asked about; null for nobody
   */
  Permissions may(Function<String, String> header, List<String> purposes, String principalId, CallOptions options);

  default CompletableFuture<Permissions> mayAsync(
      Function<String, String> header, List<String> purposes, String principalId) {
    return mayAsync(header, purposes, principalId, CallOptions.NONE);
  }

  CompletableFuture<Permissions> mayAsync(
      Function<String, String> header, List<String> purposes, String principalId, CallOptions options);

  /** Resolves if the server answers; the key is not checked. */
  default Health ping() {
    return ping(CallOptions.NONE);
  }

  Health ping(CallOptions options);

  default CompletableFuture<Health> pingAsync() {
    return pingAsync(CallOptions.NONE);
  }

  CompletableFuture<Health> pingAsync(CallOptions options);

  /** Cancels running calls; later calls are refused. */
  @Override
  void close();
}
