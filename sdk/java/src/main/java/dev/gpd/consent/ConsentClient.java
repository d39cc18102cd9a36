package dev.gpd.consent;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/** A client of gpd's consent API. Create one per process and share it between threads. */
public class ConsentClient implements Consent {
  /** The version of this library. */
  public static final String VERSION = Transport.VERSION;

  private final Calls calls;
  private final Transport transport;
  private final Questions questions;
  private final Visitors visitors;
  private final Sessions sessions =
      new Sessions() {
        @Override
        public Session create(String principalId, CallOptions options) {
          return calls.session(principalId, options).await();
        }

        @Override
        public CompletableFuture<Session> createAsync(String principalId, CallOptions options) {
          return calls.session(principalId, options).future();
        }
      };

  ConsentClient(Transport transport) {
    this.transport = transport;
    this.calls = new Calls(transport);
    this.questions = new Questions(transport);
    Settings settings = transport.settings;
    this.visitors =
        new Visitors(Questions.remotes(calls), settings.onUnavailable, () -> settings.cookieDomain, settings.clock::instant);
  }

  public static ConsentClientBuilder builder() {
    return new ConsentClientBuilder();
  }

  /** Reads GPD_CONSENT_URL and GPD_CONSENT_KEY. */
  public static ConsentClient fromEnv() {
    return builder().env(System.getenv()).build();
  }

  @Override
  public boolean isAllowed(Check check, CallOptions options) {
    return calls.isAllowed(check, options).await();
  }

  @Override
  public CompletableFuture<Boolean> isAllowedAsync(Check check, CallOptions options) {
    return calls.isAllowed(check, options).future();
  }

  @Override
  public Decision canProcess(Check check, CallOptions options) {
    return calls.canProcess(check, options).await();
  }

  @Override
  public CompletableFuture<Decision> canProcessAsync(Check check, CallOptions options) {
    return calls.canProcess(check, options).future();
  }

  @Override
  public List<Decision> canProcessMany(List<Check> checks, CallOptions options) {
    if (checks != null && checks.isEmpty()) return List.of();
    return calls.canProcessMany(checks, options).await();
  }

  @Override
  public CompletableFuture<List<Decision>> canProcessManyAsync(List<Check> checks, CallOptions options) {
    if (checks != null && checks.isEmpty()) return CompletableFuture.completedFuture(List.of());
    return calls.canProcessMany(checks, options).future();
  }

  @Override
  public WriteResult grant(ConsentWrite write, CallOptions options) {
    return calls.write("grant", write, options).await();
  }

  @Override
  public CompletableFuture<WriteResult> grantAsync(ConsentWrite write, CallOptions options) {
    return calls.write("grant", write, options).future();
  }

  @Override
  public WriteResult deny(ConsentWrite write, CallOptions options) {
    return calls.write("deny", write, options).await();
  }

  @Override
  public CompletableFuture<WriteResult> denyAsync(ConsentWrite write, CallOptions options) {
    return calls.write("deny", write, options).future();
  }

  @Override
  public WriteResult withdraw(ConsentWrite write, CallOptions options) {
    return calls.write("withdraw", write, options).await();
  }

  @Override
  public CompletableFuture<WriteResult> withdrawAsync(ConsentWrite write, CallOptions options) {
    return calls.write("withdraw", write, options).future();
  }

  @Override
  public ConsentState state(String principalId, CallOptions options) {
    return calls.state(principalId, options).await();
  }

  @Override
  public CompletableFuture<ConsentState> stateAsync(String principalId, CallOptions options) {
    return calls.state(principalId, options).future();
  }

  @Override
  public History history(String principalId, History.Page page, CallOptions options) {
    return calls.history(principalId, page, options).await();
  }

  @Override
  public CompletableFuture<History> historyAsync(String principalId, History.Page page, CallOptions options) {
    return calls.history(principalId, page, options).future();
  }

  @Override
  public Join join(String session, String principalId, String principalSecret, CallOptions options) {
    return calls.join(session, principalId, principalSecret, options).await();
  }

  @Override
  public CompletableFuture<Join> joinAsync(String session, String principalId, String principalSecret, CallOptions options) {
    return calls.join(session, principalId, principalSecret, options).future();
  }

  @Override
  public Link link(String session, String token, CallOptions options) {
    return calls.link(session, token, options).await();
  }

  @Override
  public CompletableFuture<Link> linkAsync(String session, String token, CallOptions options) {
    return calls.link(session, token, options).future();
  }

  @Override
  public ErasureReceipt erase(String session, CallOptions options) {
    return calls.erase(session, options).await();
  }

  @Override
  public CompletableFuture<ErasureReceipt> eraseAsync(String session, CallOptions options) {
    return calls.erase(session, options).future();
  }

  @Override
  public List<Purpose> purposes(CallOptions options) {
    return calls.purposes(options).await();
  }

  @Override
  public CompletableFuture<List<Purpose>> purposesAsync(CallOptions options) {
    return calls.purposes(options).future();
  }

  @Override
  public SavedPurposes savePurposes(List<PurposeDefinition> purposes, Boolean material, CallOptions options) {
    return calls.savePurposes(purposes, material, options).await();
  }

  @Override
  public CompletableFuture<SavedPurposes> savePurposesAsync(List<PurposeDefinition> purposes, Boolean material, CallOptions options) {
    return calls.savePurposes(purposes, material, options).future();
  }

  @Override
  public List<Policy> policies(CallOptions options) {
    return calls.policies(options).await();
  }

  @Override
  public CompletableFuture<List<Policy>> policiesAsync(CallOptions options) {
    return calls.policies(options).future();
  }

  @Override
  public PublishedPolicy publishPolicy(String text, boolean material, CallOptions options) {
    return calls.publishPolicy(text, material, options).await();
  }

  @Override
  public CompletableFuture<PublishedPolicy> publishPolicyAsync(String text, boolean material, CallOptions options) {
    return calls.publishPolicy(text, material, options).future();
  }

  @Override
  public String checkpoint(CallOptions options) {
    return calls.ofLog("checkpoint", options).await();
  }

  @Override
  public CompletableFuture<String> checkpointAsync(CallOptions options) {
    return calls.ofLog("checkpoint", options).future();
  }

  @Override
  public String vkey(CallOptions options) {
    return calls.ofLog("vkey", options).map(String::strip).await();
  }

  @Override
  public CompletableFuture<String> vkeyAsync(CallOptions options) {
    return calls.ofLog("vkey", options).map(String::strip).future();
  }

  @Override
  public String exportLog(CallOptions options) {
    return calls.ofLog("exportLog", options).await();
  }

  @Override
  public CompletableFuture<String> exportLogAsync(CallOptions options) {
    return calls.ofLog("exportLog", options).future();
  }

  @Override
  public Sessions sessions() {
    return sessions;
  }

  @Override
  public Receipt receipt(long seq, CallOptions options) {
    return calls.receipt(seq, options).await();
  }

  @Override
  public CompletableFuture<Receipt> receiptAsync(long seq, CallOptions options) {
    return calls.receipt(seq, options).future();
  }

  @Override
  public String proof(long seq, CallOptions options) {
    return calls.proof(seq, options).await();
  }

  @Override
  public CompletableFuture<String> proofAsync(long seq, CallOptions options) {
    return calls.proof(seq, options).future();
  }

  @Override
  public Verdict decision(String requestId, CallOptions options) {
    return calls.decision(requestId, options).await();
  }

  @Override
  public CompletableFuture<Verdict> decisionAsync(String requestId, CallOptions options) {
    return calls.decision(requestId, options).future();
  }

  private Question<Advice> advice(String requestId, String context) {
    return new Question.Ask<>(
        Question.Remote.of(options -> calls.decision(requestId, options)),
        (verdict, error) ->
            new Question.Done<>(error == null ? Advice.of(verdict, context, transport.settings.clock.instant()) : Advice.NO_VERDICT));
  }

  @Override
  public Advice checkout(String requestId, String context, Duration deadline) {
    Rules.deadline("checkout", deadline);
    return Question.await(() -> advice(requestId, context), deadline);
  }

  @Override
  public CompletableFuture<Advice> checkoutAsync(String requestId, String context, Duration deadline) {
    try {
      Rules.deadline("checkout", deadline);
    } catch (ConsentException refused) {
      return CompletableFuture.failedFuture(refused);
    }
    return Question.future(() -> advice(requestId, context), deadline);
  }

  /** True if there is nothing to ask about. */
  private boolean isUnsigned(AgentRequest request) {
    Rules.agent(request);
    if (request.isSigned()) return false;
    transport.checkOpen("agent");
    transport.note("agent", List.of(request));
    return true;
  }

  @Override
  public AgentAnswer agent(AgentRequest request, CallOptions options) {
    return isUnsigned(request) ? AgentAnswer.UNSIGNED : calls.agent(request, options).await();
  }

  @Override
  public CompletableFuture<AgentAnswer> agentAsync(AgentRequest request, CallOptions options) {
    try {
      if (isUnsigned(request)) return CompletableFuture.completedFuture(AgentAnswer.UNSIGNED);
    } catch (ConsentException refused) {
      return CompletableFuture.failedFuture(refused);
    }
    return calls.agent(request, options).future();
  }

  @Override
  public ReportedOutcome reportOutcome(String requestId, String outcome, String at, CallOptions options) {
    return calls.reportOutcome(requestId, outcome, at, options).await();
  }

  @Override
  public CompletableFuture<ReportedOutcome> reportOutcomeAsync(
      String requestId, String outcome, String at, CallOptions options) {
    return calls.reportOutcome(requestId, outcome, at, options).future();
  }

  @Override
  public Optional<VisitorState> readState(String cookieHeader, CallOptions options) {
    return questions.answer("readState", () -> visitors.readState(cookieHeader), options, cookieHeader);
  }

  @Override
  public CompletableFuture<Optional<VisitorState>> readStateAsync(String cookieHeader, CallOptions options) {
    return questions.answerAsync("readState", () -> visitors.readState(cookieHeader), options, cookieHeader);
  }

  @Override
  public CurrentState currentState(String cookieHeader, CallOptions options) {
    return questions.answer("currentState", () -> visitors.currentState(cookieHeader), options, cookieHeader);
  }

  @Override
  public CompletableFuture<CurrentState> currentStateAsync(String cookieHeader, CallOptions options) {
    return questions.answerAsync("currentState", () -> visitors.currentState(cookieHeader), options, cookieHeader);
  }

  private Question<Permissions> page(Function<String, String> header, List<String> purposes, String principalId) {
    Rules.page("may", header, purposes, principalId);
    return visitors.may(header, purposes, principalId);
  }

  @Override
  public Permissions may(
      Function<String, String> header, List<String> purposes, String principalId, CallOptions options) {
    return questions.answer("may", () -> page(header, purposes, principalId), options, header, purposes, principalId);
  }

  @Override
  public CompletableFuture<Permissions> mayAsync(
      Function<String, String> header, List<String> purposes, String principalId, CallOptions options) {
    return questions.answerAsync("may", () -> page(header, purposes, principalId), options, header, purposes, principalId);
  }

  @Override
  public Health ping(CallOptions options) {
    return calls.ping(options).await();
  }

  @Override
  public CompletableFuture<Health> pingAsync(CallOptions options) {
    return calls.ping(options).future();
  }

  @Override
  public void close() {
    transport.close();
  }
}
