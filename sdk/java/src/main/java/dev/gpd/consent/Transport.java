package dev.gpd.consent;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The connections of a client, and the errors of answers (SPEC.md sections 3 and 5). */
class Transport {
  static final String VERSION = "0.1.0";

  private static final Pattern CODE = Pattern.compile("[a-z][a-z0-9-]{0,63}");
  private static final Pattern REQUEST_ID = Pattern.compile("[A-Za-z0-9_-]{1,64}");
  /** Shorter principal ids are only compared as a whole, because many words contain them. */
  private static final int MIN_CONTAINED = 4;

  final Settings settings;
  /** Belongs to this client, so that its thread ends with the client and keeps no class loader alive. */
  final ScheduledThreadPoolExecutor timer = newTimer();
  private final Watchdog watchdog = new Watchdog(timer);
  /** Null after close, and for the fake: the JDK closes the connections when their client is unreachable. */
  private volatile HttpClient http;
  private volatile boolean isClosed;
  /** Place of the address that answered last. */
  volatile int preferred;
  /** True if the HTTP client was created here; otherwise it belongs to the caller. */
  private final boolean isOwn;

  Transport(Settings settings, HttpClient http, boolean isOwn) {
    this.settings = settings;
    this.http = http;
    this.isOwn = isOwn;
  }

  private static ScheduledThreadPoolExecutor newTimer() {
    ScheduledThreadPoolExecutor timer =
        new ScheduledThreadPoolExecutor(
            1,
            task -> {
              Thread thread = new Thread(task, "gpd-consent-timer");
              thread.setDaemon(true);
              return thread;
            });
    timer.setRemoveOnCancelPolicy(true);
    return timer;
  }

  static HttpClient newHttpClient() {
    return HttpClient.newBuilder()
        .version(HttpClient.Version.HTTP_1_1)
        .followRedirects(HttpClient.Redirect.NEVER)
        .proxy(HttpClient.Builder.NO_PROXY)
        .build();
  }

  private static ConsentException closed(Call call) {
    return ConsentException.of(call.name(), ErrorKind.CONFIG, "closed");
  }

  /** @throws ConsentException config when the client is closed */
  void checkOpen(String method) {
    if (isClosed) throw ConsentException.of(method, ErrorKind.CONFIG, "closed");
  }

  /** Notes a call of a method; only the fake does. */
  void note(String method, List<Object> args) {}

  /** Shows an error to the hook of the caller, whose own failure must not change the outcome. */
  ConsentException told(ConsentException error) {
    try {
      settings.onError.accept(error);
    } catch (RuntimeException ignored) {
      // Ignored: a logger that fails would turn a denial into another error.
    }
    return error;
  }

  Reply exchange(Call call, String base, HttpResponse.BodyHandler<byte[]> collecting)
      throws IOException, InterruptedException {
    return Reply.of(open(call).send(request(call, base), collecting));
  }

  CompletableFuture<Reply> exchangeAsync(Call call, String base, HttpResponse.BodyHandler<byte[]> collecting) {
    return open(call).sendAsync(request(call, base), collecting).thenApply(Reply::of);
  }

  /** Creates a call that is not running yet. */
  Operation begin(Call call, CallOptions options) {
    checkOpen(call.name());
    if (call.args() != null) note(call.name(), call.args());
    Duration ownTime = call.row().isWrite() ? settings.writeTimeout : settings.timeout;
    Duration timeout = options.timeout() == null ? ownTime : options.timeout();
    Operation operation = new Operation(this, call, timeout.toNanos());
    watchdog.add(operation);
    operation.outcome.whenComplete((answer, error) -> watchdog.remove(operation));
    return operation;
  }

  void close() {
    HttpClient client = http;
    http = null;
    isClosed = true;
    for (Operation operation : watchdog.running()) operation.end(closed(operation.call));
    timer.shutdownNow();
    if (isOwn && client != null) shutDown(client);
  }

  /** Ends the threads of a client: at once since Java 21; earlier JDKs do it when the client is garbage-collected. */
  private static void shutDown(HttpClient client) {
    try {
      HttpClient.class.getMethod("shutdownNow").invoke(client);
    } catch (ReflectiveOperationException before21) {
      // Ignored: nothing refers to it any longer.
    }
  }

  /** @throws ConsentException config when the client is closed */
  HttpClient open(Call call) {
    HttpClient client = http;
    if (client == null) throw closed(call);
    return client;
  }

  private HttpRequest request(Call call, String base) {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create(base + call.path()))
            .version(HttpClient.Version.HTTP_1_1)
            .method(call.row().verb(), call.publisher())
            .header("User-Agent", "gpd-consent-java/" + VERSION)
            .header("Accept", call.row().accept())
            .header("Accept-Encoding", "identity")
            .header("Cache-Control", "no-store");
    String token = call.token() == null ? settings.key : call.token();
    if (!call.operation().equals("ping")) request.header("Authorization", "Bearer " + token);
    if (call.body() != null) request.header("Content-Type", "application/json");
    if (call.idempotencyKey() != null) request.header("Idempotency-Key", call.idempotencyKey());
    return request.build();
  }

  ConsentException errorOf(Call call, Reply response, Instant now) {
    ErrorKind kind = ErrorKind.ofStatus(response.status());
    String retryAfter = response.headers().firstValue("retry-after").orElse(null);
    return ConsentException.answered(
        call.name(),
        kind,
        codeOf(call, kind, Json.object(response.body())),
        response.status(),
        requestIdOf(call, response.headers()),
        Schedule.retryAfter(retryAfter, now));
  }

  private String codeOf(Call call, ErrorKind kind, Map<String, Object> body) {
    boolean isCode =
        body != null && body.get("error") instanceof String code && CODE.matcher(code).matches() && !tells(call, code);
    return isCode ? (String) body.get("error") : kind.toString();
  }

  String requestIdOf(Call call, HttpHeaders headers) {
    return headers
        .firstValue("x-request-id")
        .filter(id -> REQUEST_ID.matcher(id).matches() && !tells(call, id))
        .orElse(null);
  }

  /** True if the text contains a secret of the call: a proxy may echo what it was sent. */
  private boolean tells(Call call, String text) {
    Stream<String> secrets = Stream.concat(Stream.of(settings.key), call.secrets().stream());
    return secrets.anyMatch(one -> one.length() < MIN_CONTAINED ? text.equals(one) : text.contains(one));
  }
}
