package dev.gpd.consent;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Makes the calls of a case. sdk/conformance/run-case.mjs names them and judges their outcomes. */
final class CaseRun {
  private static final ExecutorService ALARMS =
      Executors.newSingleThreadExecutor(
          task -> {
            Thread thread = new Thread(task, "alarms");
            thread.setDaemon(true);
            return thread;
          });

  private static final HttpClient HTTP = Transport.newHttpClient();

  private final Servers servers;
  private final boolean isAsync;
  private final Invocation invocation = new Invocation();

  CaseRun(Servers servers, boolean isAsync) {
    this.servers = servers;
    this.isAsync = isAsync;
  }

  private Map<String, Object> post(String to, Object outcome) throws IOException, InterruptedException {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(servers.text("runs") + "/" + to))
            .POST(HttpRequest.BodyPublishers.ofString(Plain.show(outcome)))
            .build();
    return Plain.fields(Plain.json(HTTP.send(request, HttpResponse.BodyHandlers.ofString()).body()));
  }

  void run(String name) throws IOException, InterruptedException {
    Map<String, Object> next = post(name, Map.of());
    while (next.get("done") == null) next = post((String) next.get("run"), perform(next));
    if (invocation.client != null) invocation.client.close();
    if (next.get("problem") != null) throw new AssertionError(next.get("problem"));
  }

  Map<String, Object> perform(Map<String, Object> step) throws InterruptedException {
    Map<String, Object> told = Plain.fields(step.get("options"));
    Duration timeout = told.get("timeoutMs") instanceof Double ms ? Duration.ofMillis(ms.longValue()) : null;
    CallOptions options = new CallOptions(timeout, (String) told.get("idempotencyKey"));
    invocation.clock = clockOf(step);
    Map<String, Object> outcome = new LinkedHashMap<>();
    long startedAt = System.nanoTime();
    try {
      outcome.put(
          "result",
          invoke((String) step.get("call"), Plain.fields(step.get("args")), options, (String) step.get("cancelWhen")));
    } catch (CancellationException cancelled) {
      outcome.put("cancelled", true);
    } catch (ConsentException error) {
      outcome.put("error", facts(error));
      outcome.put("printed", trace(error));
    } catch (RuntimeException | AssertionError problem) {
      outcome.put("problem", trace(problem));
    }
    outcome.put("elapsedMs", (System.nanoTime() - startedAt) / 1e6);
    return outcome;
  }

  /** The time of the step, or so much later than the time. */
  private static Clock clockOf(Map<String, Object> step) {
    if (step.get("now") instanceof Double now) return Clock.fixed(Instant.ofEpochSecond(now.longValue()), ZoneOffset.UTC);
    long later = step.get("laterSeconds") instanceof Double seconds ? seconds.longValue() : 0;
    return Clock.offset(Clock.systemUTC(), Duration.ofSeconds(later));
  }

  private Object invoke(String name, Map<String, Object> args, CallOptions options, String cancelWhen)
      throws InterruptedException {
    CompletableFuture<?> future = isAsync ? invocation.future(name, args, options) : null;
    Thread caller = Thread.currentThread();
    Runnable cancel = future == null ? caller::interrupt : () -> future.cancel(true);
    Future<?> alarm =
        cancelWhen == null
            ? null
            : ALARMS.submit(
                () -> {
                  HttpRequest came = HttpRequest.newBuilder(URI.create(cancelWhen)).build();
                  HTTP.send(came, HttpResponse.BodyHandlers.discarding());
                  cancel.run();
                  return null;
                });
    try {
      if (future == null) return invocation.call(name, args, options);
      return Invocation.asWire(future.get());
    } catch (ExecutionException failed) {
      if (failed.getCause() instanceof RuntimeException error) throw error;
      throw new AssertionError(failed);
    } finally {
      if (alarm != null) alarm.cancel(true);
      boolean wasInterrupted = Thread.interrupted();
      boolean isDue = future == null && cancelWhen != null;
      if (wasInterrupted != isDue) throw new AssertionError("the thread's interruption was not kept: " + wasInterrupted);
    }
  }

  private static Map<String, Object> facts(ConsentException error) {
    Map<String, Object> facts = new LinkedHashMap<>();
    facts.put("kind", error.kind().toString());
    facts.put("code", error.code());
    facts.put("status", error.status());
    facts.put("requestId", error.requestId());
    facts.put("detail", error.detail() == null ? null : error.detail().toString());
    facts.put("retryAfterSeconds", error.retryAfterSeconds());
    return facts;
  }

  /** The whole trace, with causes and suppressed exceptions. */
  private static String trace(Throwable failed) {
    StringWriter trace = new StringWriter();
    failed.printStackTrace(new PrintWriter(trace));
    return trace.toString();
  }
}
