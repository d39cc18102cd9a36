package dev.gpd.consent;

import java.util.List;
import java.util.concurrent.CompletableFuture;

/** A client of gpd's consent API. Create one per process and share it between threads. */
public final class ConsentClient implements Consent {
  /** The version of this library. */
  public static final String VERSION = Transport.VERSION;

  private final Calls calls;
  private final Transport transport;
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
    if (Calls.isNone(checks)) return List.of();
    return calls.canProcessMany(checks, options).await();
  }

  @Override
  public CompletableFuture<List<Decision>> canProcessManyAsync(List<Check> checks, CallOptions options) {
    if (Calls.isNone(checks)) return CompletableFuture.completedFuture(List.of());
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
