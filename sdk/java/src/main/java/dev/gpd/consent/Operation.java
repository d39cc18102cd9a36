package dev.gpd.consent;

import java.io.IOException;
import java.net.ConnectException;
import java.net.http.HttpResponse;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.net.ssl.SSLException;

/**
 * One call: attempts and waits until an answer, an error, or a cancellation (SPEC.md section 4). It has two drivers: {@link #await} runs in
 * the caller's thread, because the futures of the JDK's client use the common pool, which on a small machine starts a thread for every
 * call; {@link #start} is for callers who want a future.
 */
final class Operation {
  /** The outcome is known: no further attempt. */
  private static final long DONE = -1;

  final CompletableFuture<Answer> outcome = new CompletableFuture<>();
  final Call call;
  private final Transport transport;
  private final long deadline;
  private int retry = 1;
  private boolean isReplayed;
  /** Place of the address of the next attempt, and how many were tried since the last wait. */
  private int place;
  private int tried = 1;
  /** The exchange or wait that the end of the call has to cancel. */
  private Future<?> running;
  private Thread waiter;
  private boolean isWoken;

  Operation(Transport transport, Call call, long timeoutNanos) {
    this.transport = transport;
    this.call = call;
    this.deadline = System.nanoTime() + timeoutNanos;
    this.place = transport.preferred;
  }

  private long remainingNanos() {
    return deadline - System.nanoTime();
  }

  /** Ends the call at once with this exception; false if it has ended already. */
  synchronized boolean end(RuntimeException reason) {
    if (!outcome.completeExceptionally(reason)) return false;
    if (waiter != null) {
      isWoken = true;
      waiter.interrupt();
    }
    if (running != null) running.cancel(true);
    return true;
  }

  boolean cancel() {
    return end(new CancellationException());
  }

  void expireWhenDue() {
    if (remainingNanos() > 0 || outcome.isDone()) return;
    // An address that lets everybody wait is not the first of the next call.
    transport.preferred = next();
    end(ConsentException.of(call.name(), ErrorKind.TIMEOUT));
  }

  private String base() {
    return transport.settings.bases.get(place);
  }

  private int next() {
    return (place + 1) % transport.settings.bases.size();
  }

  /** Waits for the outcome. An interrupt from outside cancels the call, and the flag stays set. */
  void await() {
    attach();
    try {
      for (long wait = 0; wait != DONE; wait = attempt()) TimeUnit.NANOSECONDS.sleep(wait);
    } catch (ConsentException closed) {
      end(closed);
    } catch (InterruptedException interrupted) {
      detach();
      // Otherwise the end of this call woke the thread.
      if (cancel()) Thread.currentThread().interrupt();
    } finally {
      detach();
    }
  }

  private synchronized void attach() {
    waiter = Thread.currentThread();
  }

  private synchronized void detach() {
    waiter = null;
    if (isWoken) Thread.interrupted();
    isWoken = false;
  }

  private long attempt() throws InterruptedException {
    if (outcome.isDone()) return DONE;
    AtomicBoolean hasBegun = new AtomicBoolean();
    try {
      return answered(transport.exchange(call, base(), collecting(hasBegun)));
    } catch (IOException broken) {
      return failed(broken, hasBegun.get());
    }
  }

  void start() {
    if (outcome.isDone()) return;
    AtomicBoolean hasBegun = new AtomicBoolean();
    CompletableFuture<Reply> exchange;
    try {
      exchange = transport.exchangeAsync(call, base(), collecting(hasBegun));
    } catch (ConsentException closed) {
      end(closed);
      return;
    }
    run(exchange);
    exchange.whenComplete(
        (response, broken) ->
            proceed(broken == null ? answered(response) : failed(broken, hasBegun.get())));
  }

  private HttpResponse.BodyHandler<byte[]> collecting(AtomicBoolean hasBegun) {
    return head -> {
      hasBegun.set(true);
      String coding = head.headers().firstValue("content-encoding").orElse("").strip();
      // The client asked for no coding, and not every language can decode it.
      return new Collector(coding.isEmpty() || coding.equalsIgnoreCase("identity") ? call.maxBytes() : -1);
    };
  }

  private void proceed(long wait) {
    if (wait == 0) start();
    else if (wait != DONE) runLater(wait);
  }

  private void runLater(long wait) {
    try {
      run(transport.timer.schedule(this::start, wait, TimeUnit.NANOSECONDS));
    } catch (RejectedExecutionException closed) {
      // Ignored: the close that stopped the timer has ended this call too.
    }
  }

  private synchronized void run(Future<?> what) {
    running = what;
    if (outcome.isDone()) what.cancel(true);
  }

  /** Returns nanoseconds until the next attempt, or DONE, like {@link #failed}. */
  private long answered(Reply response) {
    if (call.row().statuses().contains(response.status())) {
      transport.preferred = place;
      String requestId = transport.requestIdOf(call, response.headers());
      outcome.complete(new Answer(response.status(), response.body(), requestId));
      return DONE;
    }
    ConsentException error = transport.errorOf(call, response, Instant.now());
    if (Wire.RETRIED.contains(response.status())) return again(error);
    outcome.completeExceptionally(error);
    return DONE;
  }

  private long failed(Throwable wrapped, boolean hasBegun) {
    boolean isWrapped = wrapped instanceof CompletionException && wrapped.getCause() != null;
    if (!hasBegun && isStale(isWrapped ? wrapped.getCause() : wrapped)) {
      boolean isSecond = isReplayed;
      isReplayed = true;
      boolean isByJdk = call.body() == null;
      if (!isSecond && !isByJdk) return 0;
      // The JDK itself replays a GET in every attempt: after the first, its replay counts as a retry.
      if (isSecond && isByJdk) retry++;
    }
    return again(Network.broken(call.name(), wrapped));
  }

  /** True if an open connection was closed before the first byte of an answer, which the JDK reports only in the message. */
  private static boolean isStale(Throwable broken) {
    if (!(broken instanceof IOException) || broken instanceof ConnectException || broken instanceof SSLException) {
      return false;
    }
    String words = broken.getMessage();
    return words == null || !words.startsWith("parsing HTTP/1.1");
  }

  private long again(ConsentException error) {
    if (error.status() == null || error.status() >= 500) {
      place = next();
      if (tried < transport.settings.bases.size()) {
        tried++;
        return 0;
      }
    }
    // A nonce is used up by the first attempt that reached gpd.
    int retries = call.operation().equals("agent") ? 0 : transport.settings.retries;
    Optional<Long> wait =
        retry > retries
            ? Optional.empty()
            : Schedule.waitNanos(
                retry, error.retryAfterSeconds(), remainingNanos(), ThreadLocalRandom.current().nextDouble());
    if (wait.isEmpty()) {
      outcome.completeExceptionally(error);
      return DONE;
    }
    retry++;
    tried = 1;
    return wait.get();
  }
}
