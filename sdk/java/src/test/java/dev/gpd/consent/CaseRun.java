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
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;

/** Runs one case; throws an error that describes the problem. */
final class CaseRun {
  private static final ExecutorService ALARMS =
      Executors.newSingleThreadExecutor(
          task -> {
            Thread thread = new Thread(task, "alarms");
            thread.setDaemon(true);
            return thread;
          });

  private static final HttpClient HTTP = Transport.newHttpClient();

  private final Map<String, Object> one;
  private final Servers servers;
  private final boolean isAsync;
  private final Map<String, Object> variables = new LinkedHashMap<>();
  private final Invocation invocation = new Invocation();

  CaseRun(Map<String, Object> one, Servers servers, boolean isAsync) {
    this.one = one;
    this.servers = servers;
    this.isAsync = isAsync;
  }

  private static String hex() {
    return UUID.randomUUID().toString().replace("-", "").substring(0, 16);
  }

  private static void require(boolean holds, String problem) {
    if (!holds) throw new AssertionError(problem);
  }

  private static Object talk(String method, String address, Object body) throws IOException, InterruptedException {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(address))
            .method(method, HttpRequest.BodyPublishers.ofString(Match.show(body)))
            .build();
    HttpResponse<String> response = HTTP.send(request, HttpResponse.BodyHandlers.ofString());
    require(response.statusCode() < 300, "the stub answered " + response.statusCode());
    return Match.json(response.body());
  }

  void run() throws IOException, InterruptedException {
    boolean isStub = one.get("kind").equals("stub");
    String id = hex();
    String base = isStub ? servers.text("stub") + "/c/" + id : servers.text("url");
    Map<String, Object> client = new LinkedHashMap<>(Schema.fields(one.get("client")));
    Object key = client.remove("key");
    setVariables(base, key == null ? "secret" : (String) key);
    if (one.get("kind").equals("fake")) {
      invocation.client = fake("error".equals(client.get("onUnavailable")) ? OnUnavailable.ERROR : OnUnavailable.DENY);
    } else if (!one.get("kind").equals("pure")) {
      client.put("url", base);
      client.put("key", variables.get("key"));
      invocation.configure(client);
    }
    if (isStub) talk("PUT", servers.text("stub") + "/script/" + id, Match.substitute(one.get("script"), variables));
    allSteps();
    if (one.get("requests") != null) {
      Object expected = Match.substitute(one.get("requests"), variables);
      requests(Schema.items(talk("GET", servers.text("stub") + "/requests/" + id, null)), Schema.fields(expected));
    }
    if (one.get("fake") != null) {
      setVariables(base, "secret");
      invocation.client = fake(OnUnavailable.DENY);
      allSteps();
    }
  }

  private void setVariables(String base, String key) {
    variables.clear();
    variables.put("principal", "käthe+" + hex() + "@shop.example");
    variables.put("principal2", "käthe+" + hex() + "@shop.example");
    variables.put("plainPrincipal", "u" + hex());
    variables.put("unique", hex());
    variables.put("url", base);
    variables.put("key", servers.key(key));
    variables.put("publishableKey", servers.key("publishable"));
    variables.put("vkey", servers.text("vkey"));
    variables.put("requestId", servers.text("requestId"));
    variables.putAll(servers.variables());
  }

  /** A fake with the purposes of the conformance server. */
  private FakeConsent fake(OnUnavailable onUnavailable) {
    FakeConsent fake = new FakeConsent(onUnavailable);
    fake.setClock(invocation.stepClock);
    fake.setGpcPolicy("support", FakeConsent.GpcPolicy.IGNORE);
    fake.setGpcPolicy("offers", FakeConsent.GpcPolicy.ASK);
    return fake;
  }

  private void allSteps() throws InterruptedException {
    List<?> steps = Schema.items(one.get("steps"));
    for (int i = 0; i < steps.size(); i++) steps(i, Schema.fields(steps.get(i)));
    if (invocation.client != null) invocation.client.close();
  }

  private void steps(int i, Map<String, Object> step) throws InterruptedException {
    if (step.get("waitMs") instanceof Double wait) Thread.sleep(wait.longValue());
    int times = step.get("times") instanceof Double count ? count.intValue() : 1;
    for (int time = 0; time < times; time++) {
      try {
        step(step);
      } catch (AssertionError problem) {
        throw new AssertionError("step " + i + " (" + step.get("call") + "): " + problem.getMessage(), problem);
      }
    }
  }

  private void step(Map<String, Object> step) throws InterruptedException {
    Map<String, Object> args = Schema.fields(Match.substitute(step.get("args"), variables));
    Map<String, Object> stepOptions = Schema.fields(Match.substitute(step.getOrDefault("options", Map.of()), variables));
    Duration timeout = stepOptions.get("timeoutMs") instanceof Double ms ? Duration.ofMillis(ms.longValue()) : null;
    CallOptions options = new CallOptions(timeout, (String) stepOptions.get("idempotencyKey"));
    Map<String, Object> expected = Schema.fields(Match.substitute(step.get("expect"), variables));
    invocation.clock = clockOf(step);
    Object result = null;
    Throwable failed = null;
    long startedAt = System.nanoTime();
    try {
      boolean isOwn = step.get("call").equals("cookieFor");
      if (isOwn) result = cookieFor((String) args.get("principalId"));
      else result = invoke((String) step.get("call"), args, options, (Double) step.get("cancelAfterRequests"));
    } catch (RuntimeException error) {
      failed = error;
    }
    double elapsed = (System.nanoTime() - startedAt) / 1e6;
    judge(result, failed, expected);
    require(
        Match.within(elapsed, expected.get("elapsedMs")),
        "it took " + elapsed + " ms, expected was " + Match.show(expected.get("elapsedMs")));
    for (Map.Entry<String, Object> saved : Schema.fields(step.get("save")).entrySet()) {
      Object value = result;
      for (String part : ((String) saved.getValue()).split("\\.")) {
        if (!part.isEmpty()) value = Schema.fields(value).get(part);
      }
      variables.put(saved.getKey(), value);
    }
  }

  /** The time of the step, or so much later than the time. */
  private static Clock clockOf(Map<String, Object> step) {
    if (step.get("now") instanceof Double now) return Clock.fixed(Instant.ofEpochSecond(now.longValue()), ZoneOffset.UTC);
    long later = step.get("laterSeconds") instanceof Double seconds ? seconds.longValue() : 0;
    return Clock.offset(Clock.systemUTC(), Duration.ofSeconds(later));
  }

  /** The cookie of this person's banner: of the fake, or as the server answers a session of the person. */
  private String cookieFor(String principalId) throws InterruptedException {
    if (invocation.client instanceof FakeConsent fake) return fake.cookieFor(principalId);
    String token = invocation.client.sessions().create(principalId).token();
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(variables.get("url") + "/v1/consent/state"))
            .header("Authorization", "Bearer " + token)
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(Match.show(Map.of("principalId", principalId))))
            .build();
    try {
      String body = HTTP.send(request, HttpResponse.BodyHandlers.ofString()).body();
      return "gpd_consent=" + Schema.fields(Match.json(body)).get("state");
    } catch (IOException broken) {
      throw new AssertionError(broken);
    }
  }

  private Object invoke(String name, Map<String, Object> args, CallOptions options, Double cancelAfter)
      throws InterruptedException {
    CompletableFuture<?> future = isAsync ? invocation.future(name, args, options) : null;
    Thread caller = Thread.currentThread();
    Runnable cancel = future == null ? caller::interrupt : () -> future.cancel(true);
    Future<?> alarm =
        cancelAfter == null
            ? null
            : ALARMS.submit(
                () -> {
                  String base = variables.get("url").toString().replace("/c/", "/came/");
                  talk("GET", base + "/" + cancelAfter.intValue(), null);
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
      boolean isDue = future == null && cancelAfter != null;
      if (wasInterrupted != isDue) throw new AssertionError("the thread's interruption was not kept: " + wasInterrupted);
    }
  }

  private void judge(Object result, Throwable failed, Map<String, Object> expected) {
    if (failed != null) leaks(failed, expected.get("hides"));
    if (Boolean.TRUE.equals(expected.get("cancelled"))) {
      require(failed instanceof CancellationException, "cancelled, and it gave " + failed);
    } else if (expected.get("error") != null) {
      require(failed instanceof ConsentException, "it gave " + (failed == null ? Match.show(result) : failed));
      differs(facts((ConsentException) failed), expected.get("error"), "error");
    } else if (failed != null) {
      throw new AssertionError(failed.toString(), failed);
    } else if (expected.containsKey("result")) {
      differs(result, expected.get("result"), "result");
    }
  }

  private static void differs(Object actual, Object expected, String at) {
    String found = Match.difference(actual, expected, at, false);
    require(found == null, found);
  }

  private static Map<String, Object> facts(ConsentException error) {
    Map<String, Object> facts = new LinkedHashMap<>();
    facts.put("kind", error.kind().toString());
    facts.put("code", error.code());
    facts.put("status", error.status() == null ? null : error.status().doubleValue());
    facts.put("requestId", error.requestId());
    facts.put("detail", error.detail() == null ? null : error.detail().toString());
    facts.put("retryAfterSeconds", error.retryAfterSeconds() == null ? null : error.retryAfterSeconds().doubleValue());
    return facts;
  }

  /** Searches the whole trace, with causes and suppressed exceptions. */
  private void leaks(Throwable failed, Object furtherSecrets) {
    StringWriter trace = new StringWriter();
    failed.printStackTrace(new PrintWriter(trace));
    Stream<Object> knownSecrets =
        Stream.of("principal", "principal2", "plainPrincipal", "key", "publishableKey").map(variables::get);
    Stream.concat(knownSecrets, Schema.items(furtherSecrets).stream())
        .forEach(text -> require(!trace.toString().contains(text.toString()), "the error tells " + text + ": " + trace));
  }

  private static void requests(List<?> requests, Map<String, Object> expected) {
    Set<Object> connections = new HashSet<>();
    for (Object request : requests) connections.add(Schema.fields(request).get("connection"));
    Object count = expected.get("count");
    require(count == null || requests.size() == (Double) count, requests.size() + " requests came, expected were " + count);
    require(
        Match.within(connections.size(), expected.get("connections")),
        connections.size() + " connections were used, expected were " + expected.get("connections"));
    if (expected.get("idempotencyKey") instanceof String rule) keys(requests, rule);
    for (Object request : requests) each(Schema.fields(request), Schema.fields(expected.get("each")));
    if (expected.get("inOrder") instanceof List<?> inOrder) {
      require(requests.size() == inOrder.size(), requests.size() + " requests came, expected were " + inOrder.size());
      for (int i = 0; i < inOrder.size(); i++) each(Schema.fields(requests.get(i)), Schema.fields(inOrder.get(i)));
    }
    List<?> gaps = Schema.items(expected.get("gapsMs"));
    for (int i = 0; i < gaps.size(); i++) {
      double gap = (Double) Schema.fields(requests.get(i + 1)).get("atMs") - (Double) Schema.fields(requests.get(i)).get("atMs");
      require(Match.within(gap, gaps.get(i)), gap + " ms lay between request " + i + " and the next");
    }
  }

  private static void each(Map<String, Object> request, Map<String, Object> each) {
    Map<String, Object> rest = new LinkedHashMap<>(each);
    List<?> absent = Schema.items(rest.remove("absentHeaders"));
    Object body = rest.remove("body");
    differs(request, rest, "request");
    if (body != null) {
      String found = Match.difference(Match.json((String) request.get("body")), body, "request.body", true);
      require(found == null, found);
    }
    for (Object name : absent) {
      require(!Schema.fields(request.get("headers")).containsKey(name), "the request has " + name);
    }
  }

  private static void keys(List<?> requests, String rule) {
    List<?> keys =
        requests.stream()
            .map(request -> Schema.fields(Schema.fields(request).get("headers")).get("idempotency-key"))
            .filter(key -> key != null)
            .toList();
    int different = new HashSet<Object>(keys).size();
    boolean isAll = keys.size() == requests.size();
    boolean holds =
        switch (rule) {
          case "none" -> keys.isEmpty();
          case "one" -> isAll && different == 1;
          case "distinct" -> isAll && different == keys.size();
          default -> throw new AssertionError("there is no rule " + rule);
        };
    require(holds, "Idempotency-Key: expected was " + rule + ", there were " + keys);
  }
}
