package dev.gpd.consent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.CookieManager;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ConsentClientTest {
  private static final String KEY = "gpd_sk_" + "k".repeat(43);
  private static final String GRANTED =
      "{\"allowed\":true,\"reason\":\"granted\",\"proof\":{\"seq\":1,\"hash\":\"" + "ab".repeat(32) + "\"}}";

  private HttpServer server;
  private final AtomicReference<String> sent = new AtomicReference<>();

  @AfterEach
  void stop() {
    if (server != null) server.stop(0);
  }

  private ConsentClientBuilder builder(int port) {
    return ConsentClient.builder().url("http://127.0.0.1:" + port).key(KEY);
  }

  private ConsentClient answering(String body, long length) throws IOException {
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.createContext(
        "/",
        exchange -> {
          try (exchange) {
            sent.set(new String(exchange.getRequestBody().readAllBytes()));
            exchange.sendResponseHeaders(200, length);
            exchange.getResponseBody().write(Bytes.utf8(body));
          }
        });
    server.start();
    return builder(server.getAddress().getPort()).build();
  }

  private static String codeOf(Executable call) {
    ConsentException error = assertThrows(ConsentException.class, call);
    return error.kind() + " " + error.code();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "{'allowed':true}", "{\"allowed\":TRUE}", "{\"allowed\":true,}", "{\"allowed\":true} x", "{\"a\":01}", "{\"a\":\"\n\"}",
        "{\"a\":NaN}", "//\n{}", "{\"a\":\"\\'\"}", "[]", "", "{\"a\":1;}", ")]}'\n{}"
      })
  void jsonIsStrict(String text) {
    assertNull(Json.object(Bytes.utf8(text)));
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void moreThan4MiBIsMalformed(boolean isTold) throws IOException {
    String large = GRANTED + " ".repeat(Collector.MAX_BYTES);
    try (ConsentClient client = answering(large, isTold ? large.length() : 0)) {
      assertEquals(ErrorKind.RESPONSE, client.canProcess("u-1", "newsletter").error().kind());
      assertEquals(ErrorKind.RESPONSE, client.canProcessAsync("u-1", "newsletter").join().error().kind());
    }
  }

  @Test
  void whatWasGivenIsSentAlsoWhenItIsZero() throws IOException {
    try (ConsentClient client = answering("{}", 2)) {
      ConsentWrite write = ConsentWrite.of("u", "p").withGpc(false).withPolicyVersion(0);
      assertEquals("response response", codeOf(() -> client.grant(write)));
      assertEquals("{\"principalId\":\"u\",\"purposes\":[\"p\"],\"policyVersion\":0,\"gpc\":false}", sent.get());
    }
  }

  @Test
  void twoIdsDoNotBecomeOne() {
    try (ConsentClient client = builder(1).build()) {
      assertEquals("invalid-request invalid-request", codeOf(() -> client.isAllowed("a\ud800", "newsletter")));
      assertEquals("invalid-request invalid-request", codeOf(() -> client.isAllowed(null, "newsletter")));
      List<Check> checks = List.of(Check.of("a", "b").withMinSeq(1));
      assertEquals("invalid-request invalid-request", codeOf(() -> client.canProcessMany(checks)));
    }
  }

  @Test
  void nothingShowsTheKey() {
    ConsentClientBuilder options = builder(1);
    try (ConsentClient client = options.build()) {
      assertFalse((options + " " + client).contains(KEY));
    }
    assertFalse(new Session("gpd_ps_secret", "u-1", "later").toString().contains("gpd_ps_secret"));
  }

  @Test
  void saysWhyItRefusesANameThatJavaCannotCall() {
    ConsentException error =
        assertThrows(ConsentException.class, () -> ConsentClient.builder().url("http://my_gpd:8080").key(KEY).build());
    assertEquals(ErrorKind.CONFIG, error.kind());
    assertTrue(error.getMessage().contains("cannot call"));
    assertFalse(error.getMessage().contains("my_gpd"));
  }

  @Test
  void refusesWhatIsNullInAWebhook() {
    String secret = "whsec_AAcOFRwjKjE4P0ZNVFtiaXB3foWMk5qhqK+2vcTL0tk=";
    WebhookOptions right = WebhookOptions.secrets(secret);
    WebhookOptions[] invalid = {
      WebhookOptions.secrets((String) null), WebhookOptions.secrets((String[]) null), right.tolerance(null), null
    };
    for (WebhookOptions options : invalid) {
      assertEquals("config config", codeOf(() -> Webhooks.verify(new byte[0], Map.of(), options)));
    }
    assertEquals("config config", codeOf(() -> Webhooks.verify(null, Map.of(), right)));
    assertEquals("config config", codeOf(() -> Webhooks.verify(new byte[0], null, right)));
  }

  private static long timers() {
    return Thread.getAllStackTraces().keySet().stream().filter(thread -> thread.getName().equals("gpd-consent-timer")).count();
  }

  @Test
  void closeEndsItsThread() throws Exception {
    ConsentClient client = answering(GRANTED, 0);
    long before = timers();
    assertTrue(client.isAllowedAsync("u-1", "newsletter").get(5, TimeUnit.SECONDS));
    assertEquals(before + 1, timers());
    client.close();
    for (int i = 0; i < 100 && timers() > before; i++) Thread.sleep(10);
    assertEquals(before, timers());
  }

  @Test
  void refusesAClientThatWouldCarryTheKeyElsewhere() {
    HttpClient follows = HttpClient.newBuilder().followRedirects(HttpClient.Redirect.ALWAYS).build();
    HttpClient keeps = HttpClient.newBuilder().cookieHandler(new CookieManager()).build();
    assertEquals("config config", codeOf(() -> builder(1).httpClient(follows).build()));
    assertEquals("config config", codeOf(() -> builder(1).httpClient(keeps).build()));
    CallOptions none = CallOptions.timeout(Duration.ZERO);
    try (ConsentClient client = builder(1).build()) {
      assertEquals("config config", codeOf(() -> client.ping(none)));
    }
  }

  /** A server of plain sockets that counts the requests and treats each as the test says. */
  private interface OnSocket {
    void meet(Socket socket) throws IOException;
  }

  private static AtomicInteger meetAll(ServerSocket listening, OnSocket behaviour) {
    AtomicInteger requests = new AtomicInteger();
    Thread thread =
        new Thread(
            () -> {
              try {
                while (true) {
                  Socket socket = listening.accept();
                  InputStream input = socket.getInputStream();
                  if (input.read() >= 0) requests.incrementAndGet();
                  behaviour.meet(socket);
                }
              } catch (IOException closed) {
                // Ignored at the end of the test.
              }
            });
    thread.setDaemon(true);
    thread.start();
    return requests;
  }

  @Test
  void aGetIsNotReplayedMoreOftenThanAPost() throws IOException {
    try (ServerSocket listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
      AtomicInteger requests =
          meetAll(
              listening,
              socket -> {
                socket.setSoLinger(true, 0);
                socket.close();
              });
      try (ConsentClient client = builder(listening.getLocalPort()).build()) {
        assertEquals("network network", codeOf(() -> client.receipt(1)));
        assertEquals(4, requests.getAndSet(0));
        assertThrows(Exception.class, () -> client.receiptAsync(1).join());
        assertEquals(4, requests.getAndSet(0));
        assertEquals("network network", codeOf(() -> client.state("u-1")));
        assertEquals(4, requests.get());
      }
    }
  }

  @Test
  void closeEndsWhatIsRunning() throws Exception {
    try (ServerSocket listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
      meetAll(listening, socket -> {});
      ConsentClient client = builder(listening.getLocalPort()).timeout(Duration.ofSeconds(30)).build();
      CompletableFuture<Boolean> future = client.isAllowedAsync("u-1", "newsletter");
      CompletableFuture<String> blocked = new CompletableFuture<>();
      Thread caller =
          new Thread(
              () -> {
                String code = codeOf(() -> client.isAllowed("u-1", "newsletter"));
                blocked.complete(code + " " + Thread.currentThread().isInterrupted());
              });
      caller.start();
      Thread.sleep(300);
      client.close();
      assertEquals("config closed false", blocked.get(5, TimeUnit.SECONDS));
      Throwable failed = assertThrows(ExecutionException.class, () -> future.get(5, TimeUnit.SECONDS));
      assertEquals("closed", ((ConsentException) failed.getCause()).code());
      assertEquals("config closed", codeOf(client::ping));
    }
  }

  @Test
  void aTimeoutOfTheFutureEndsTheCall() throws Exception {
    try (ServerSocket listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
      CompletableFuture<Integer> ended = new CompletableFuture<>();
      meetAll(
          listening,
          socket -> {
            while (socket.getInputStream().read() >= 0) continue;
            ended.complete(-1);
          });
      try (ConsentClient client = builder(listening.getLocalPort()).timeout(Duration.ofSeconds(30)).build()) {
        CompletableFuture<Boolean> future =
            client.isAllowedAsync("u-1", "newsletter").orTimeout(200, TimeUnit.MILLISECONDS);
        Throwable failed = assertThrows(ExecutionException.class, future::get);
        assertTrue(failed.getCause() instanceof TimeoutException);
        assertEquals(-1, ended.get(5, TimeUnit.SECONDS));
      }
    }
  }
}
