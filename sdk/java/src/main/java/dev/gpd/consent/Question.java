package dev.gpd.consent;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Supplier;

/** A question that takes any number of calls, one after the other. It can be awaited, or turned into a future. */
sealed interface Question<T> {
  /** The answer. */
  record Done<T>(T value) implements Question<T> {}

  /**
   * A call to be made.
   *
   * @param next takes its value or its error, of which one is null
   */
  record Ask<T, A>(Remote<A> remote, BiFunction<A, ConsentException, Question<T>> next) implements Question<T> {
    private Question<T> await(CallOptions options) {
      A value;
      try {
        value = remote.await(options);
      } catch (ConsentException error) {
        return next.apply(null, error);
      }
      return next.apply(value, null);
    }

    private void begin(CompletableFuture<T> result, long deadline) {
      CompletableFuture<A> call = remote.future(remaining(deadline));
      call.whenComplete(
          (value, failed) -> {
            if (failed != null && !(failed instanceof ConsentException)) result.completeExceptionally(failed);
            else Question.advance(() -> next.apply(value, (ConsentException) failed), result, deadline);
          });
      // Any end of the future, such as cancel or a timeout, ends the call.
      result.whenComplete((value, error) -> call.cancel(true));
    }
  }

  /** A call to gpd, or to what stands for it. */
  interface Remote<A> {
    A await(CallOptions options);

    CompletableFuture<A> future(CallOptions options);

    static <A> Remote<A> of(Function<CallOptions, Pending<A>> pending) {
      return new Remote<>() {
        @Override
        public A await(CallOptions options) {
          return pending.apply(options).await();
        }

        @Override
        public CompletableFuture<A> future(CallOptions options) {
          return pending.apply(options).future();
        }
      };
    }
  }

  /** The maximum of one call, which a client's longer timeout must not exceed. */
  long MAX_CALL_NANOS = Duration.ofMinutes(1).toNanos();

  /** At least 1 ms: a call without time left ends as a timeout, as any other. */
  private static CallOptions remaining(long deadline) {
    long nanos = Math.max(1_000_000, Math.min(MAX_CALL_NANOS, deadline - System.nanoTime()));
    return CallOptions.timeout(Duration.ofNanos(nanos));
  }

  /** Makes all calls in one deadline. */
  static <T> T await(Supplier<Question<T>> first, Duration timeout) {
    long deadline = System.nanoTime() + timeout.toNanos();
    Question<T> question = first.get();
    while (question instanceof Ask<T, ?> ask) question = ask.await(remaining(deadline));
    return ((Done<T>) question).value();
  }

  static <T> CompletableFuture<T> future(Supplier<Question<T>> first, Duration timeout) {
    CompletableFuture<T> result = new CompletableFuture<>();
    advance(first, result, System.nanoTime() + timeout.toNanos());
    return result;
  }

  private static <T> void advance(Supplier<Question<T>> next, CompletableFuture<T> result, long deadline) {
    try {
      Question<T> question = next.get();
      if (question instanceof Ask<T, ?> ask) ask.begin(result, deadline);
      else result.complete(((Done<T>) question).value());
    } catch (RuntimeException error) {
      result.completeExceptionally(error);
    }
  }
}
