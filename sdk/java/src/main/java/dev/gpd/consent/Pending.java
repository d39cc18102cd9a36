package dev.gpd.consent;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * A call that was not sent yet. It can be awaited, or turned into a future.
 *
 * @param begin creates the call, or throws for invalid arguments
 * @param result reads an answer
 * @param otherwise turns an error into a result, or throws it
 */
record Pending<T>(Supplier<Operation> begin, Function<Answer, T> result, Function<ConsentException, T> otherwise) {

  <R> Pending<R> map(Function<T, R> change) {
    return new Pending<>(begin, result.andThen(change), otherwise.andThen(change));
  }

  /** @throws java.util.concurrent.CancellationException when the thread was interrupted; its interrupt flag stays set */
  T await() {
    Operation operation = begin.get();
    operation.await();
    try {
      return resultOf(operation.outcome.join(), null);
    } catch (CompletionException failed) {
      return resultOf(null, failed.getCause());
    }
  }

  private T resultOf(Answer answer, Throwable failed) {
    try {
      if (failed instanceof ConsentException error) throw error;
      if (failed instanceof RuntimeException other) throw other;
      return result.apply(answer);
    } catch (ConsentException error) {
      return otherwise.apply(error);
    }
  }

  /** Any end of the future, such as cancel or a timeout, ends the call. */
  CompletableFuture<T> future() {
    CompletableFuture<T> future = new CompletableFuture<>();
    try {
      Operation operation = begin.get();
      operation.outcome.whenComplete((answer, failed) -> settle(future, answer, failed));
      future.whenComplete((value, error) -> operation.cancel());
      operation.start();
    } catch (ConsentException refused) {
      future.completeExceptionally(refused);
    }
    return future;
  }

  private void settle(CompletableFuture<T> future, Answer answer, Throwable failed) {
    try {
      future.complete(resultOf(answer, failed));
    } catch (RuntimeException error) {
      future.completeExceptionally(error);
    }
  }
}
