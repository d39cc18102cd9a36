package dev.gpd.consent;

import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.function.Supplier;

/** Futures of methods that complete at once. */
abstract class AtOnce implements Consent {
  static <T> CompletableFuture<T> async(Supplier<T> call) {
    try {
      return CompletableFuture.completedFuture(call.get());
    } catch (ConsentException error) {
      return CompletableFuture.failedFuture(error);
    }
  }

  abstract Session session(String principalId);

  @Override
  public Sessions sessions() {
    return new Sessions() {
      @Override
      public Session create(String principalId, CallOptions options) {
        return session(principalId);
      }

      @Override
      public CompletableFuture<Session> createAsync(String principalId, CallOptions options) {
        return async(() -> session(principalId));
      }
    };
  }

  @Override
  public CompletableFuture<Boolean> isAllowedAsync(Check check, CallOptions options) {
    return async(() -> isAllowed(check, options));
  }

  @Override
  public CompletableFuture<Decision> canProcessAsync(Check check, CallOptions options) {
    return async(() -> canProcess(check, options));
  }

  @Override
  public CompletableFuture<List<Decision>> canProcessManyAsync(List<Check> checks, CallOptions options) {
    return async(() -> canProcessMany(checks, options));
  }

  @Override
  public CompletableFuture<WriteResult> grantAsync(ConsentWrite write, CallOptions options) {
    return async(() -> grant(write, options));
  }

  @Override
  public CompletableFuture<WriteResult> denyAsync(ConsentWrite write, CallOptions options) {
    return async(() -> deny(write, options));
  }

  @Override
  public CompletableFuture<WriteResult> withdrawAsync(ConsentWrite write, CallOptions options) {
    return async(() -> withdraw(write, options));
  }

  @Override
  public CompletableFuture<ConsentState> stateAsync(String principalId, CallOptions options) {
    return async(() -> state(principalId, options));
  }

  @Override
  public CompletableFuture<History> historyAsync(String principalId, History.Page page, CallOptions options) {
    return async(() -> history(principalId, page, options));
  }

  @Override
  public CompletableFuture<Receipt> receiptAsync(long seq, CallOptions options) {
    return async(() -> receipt(seq, options));
  }

  @Override
  public CompletableFuture<String> proofAsync(long seq, CallOptions options) {
    return async(() -> proof(seq, options));
  }

  @Override
  public CompletableFuture<Verdict> decisionAsync(String requestId, CallOptions options) {
    return async(() -> decision(requestId, options));
  }

  @Override
  public CompletableFuture<ReportedOutcome> reportOutcomeAsync(
      String requestId, String outcome, String at, CallOptions options) {
    return async(() -> reportOutcome(requestId, outcome, at, options));
  }

  @Override
  public CompletableFuture<Optional<VisitorState>> readStateAsync(String cookieHeader, CallOptions options) {
    return async(() -> readState(cookieHeader, options));
  }

  @Override
  public CompletableFuture<CurrentState> currentStateAsync(String cookieHeader, CallOptions options) {
    return async(() -> currentState(cookieHeader, options));
  }

  @Override
  public CompletableFuture<Permissions> mayAsync(
      Function<String, String> header, List<String> purposes, String principalId, CallOptions options) {
    return async(() -> may(header, purposes, principalId, options));
  }

  @Override
  public CompletableFuture<Health> pingAsync(CallOptions options) {
    return async(() -> ping(options));
  }
}
