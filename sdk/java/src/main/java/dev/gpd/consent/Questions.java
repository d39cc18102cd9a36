package dev.gpd.consent;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/** Asks questions that may take several calls within the time of one. */
final class Questions {
  private final Transport transport;

  Questions(Transport transport) {
    this.transport = transport;
  }

  /** The calls that a question about a visitor may need. */
  static Visitors.Remotes remotes(Calls calls) {
    return new Visitors.Remotes() {
      @Override
      public Question.Remote<StateKeys.KeySet> fetchKeys(String method) {
        return Question.Remote.of(options -> calls.stateKeys(method, options));
      }

      @Override
      public Question.Remote<Visitors.Refreshed> refresh(String method, SignedState state, boolean gpc) {
        return Question.Remote.of(options -> calls.refresh(method, state, gpc, options));
      }

      @Override
      public Question.Remote<List<Decision>> check(String method, List<Check> checks) {
        return Question.Remote.of(options -> calls.checkMany(method, checks, options, false));
      }
    };
  }

  /** All calls of a question share this time. */
  private Duration timeoutOf(String method, CallOptions options) {
    if (options == null) throw ConsentException.hinted(method, ErrorKind.CONFIG, "there are no options");
    if (options.timeout() == null) return transport.settings.timeout;
    ConsentClientBuilder.checkCallTimeout(method, options.timeout());
    return options.timeout();
  }

  <T> T answer(String method, Supplier<Question<T>> question, CallOptions options, Object... args) {
    Duration timeout = timeoutOf(method, options);
    transport.checkOpen(method);
    transport.note(method, Arrays.asList(args));
    return Question.await(question, timeout);
  }

  <T> CompletableFuture<T> answerAsync(
      String method, Supplier<Question<T>> question, CallOptions options, Object... args) {
    try {
      Duration timeout = timeoutOf(method, options);
      transport.checkOpen(method);
      transport.note(method, Arrays.asList(args));
      return Question.future(question, timeout);
    } catch (ConsentException refused) {
      return CompletableFuture.failedFuture(refused);
    }
  }
}
