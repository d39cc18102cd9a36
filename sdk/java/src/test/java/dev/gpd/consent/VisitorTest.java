package dev.gpd.consent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.springframework.mock.web.MockHttpServletRequest;

/** A person who has granted two purposes, of which one ignores the signal. */
class VisitorTest {
  private static final Instant START = Instant.ofEpochSecond(1_767_225_600);
  private static final List<String> PURPOSES = List.of("ads", "newsletter", "support");

  private FakeConsent fake;
  private String cookie;

  private static FakeConsent visited() {
    FakeConsent fake = new FakeConsent();
    fake.setClock(Clock.fixed(START, ZoneOffset.UTC));
    fake.setCookieDomain("shop.example");
    fake.setGpcPolicy("support", FakeConsent.GpcPolicy.IGNORE);
    fake.grant(ConsentWrite.of("u-1", "newsletter", "support"));
    return fake;
  }

  @BeforeEach
  void visit() {
    fake = visited();
    cookie = fake.cookieFor("u-1");
  }

  private void later(long seconds) {
    fake.setClock(Clock.fixed(START.plusSeconds(seconds), ZoneOffset.UTC));
  }

  private static ErrorKind kindOf(Executable call) {
    return assertThrows(ConsentException.class, call).kind();
  }

  @Test
  void readsTheHeadersOfAServlet() {
    MockHttpServletRequest request = new MockHttpServletRequest();
    assertEquals(List.of(), fake.may(request::getHeader, PURPOSES).purposes());
    request.addHeader("Cookie", cookie);
    Permissions may = fake.may(request::getHeader, PURPOSES);
    assertEquals(List.of("newsletter", "support"), may.purposes());
    assertTrue(may.allows("newsletter"));
    assertFalse(may.allows("ads"));
    assertFalse(may.allows("other"));
    request.addHeader("Sec-GPC", "0, 1");
    assertEquals(List.of("support"), fake.mayAsync(request::getHeader, PURPOSES, null).join().purposes());
  }

  @Test
  void refusesWhatCannotBeMeant() {
    assertEquals(ErrorKind.INVALID_REQUEST, kindOf(() -> fake.may(null, PURPOSES)));
    assertEquals(ErrorKind.INVALID_REQUEST, kindOf(() -> fake.may(name -> null, null)));
    assertEquals(ErrorKind.INVALID_REQUEST, kindOf(() -> fake.may(name -> null, PURPOSES, "")));
  }

  @Test
  void renewsACookieAsTheServerDoes() {
    fake.withdraw(ConsentWrite.of("u-1", "newsletter"));
    // The cookie itself says so for five minutes: the banner replaces it at once.
    assertTrue(fake.may(name -> name.equals("Cookie") ? cookie : null, PURPOSES).allows("newsletter"));
    assertEquals(List.of("support"), fake.may(name -> null, PURPOSES, "u-1").purposes());
    later(300);
    assertEquals(Optional.empty(), fake.readState(cookie));
    CurrentState current = fake.currentState(cookie);
    assertEquals(List.of("support"), current.purposes());
    assertEquals(3, current.seq());
    assertTrue(current.setCookie().endsWith("; SameSite=Lax; Secure; Domain=shop.example"), current.setCookie());
    VisitorState renewed = fake.readState(current.setCookie().split(";")[0]).orElseThrow();
    assertEquals(new VisitorState(List.of("support"), 3, "2026-01-01T00:05:00.000Z"), renewed);
  }

  @Test
  void isAsStrictAsTheClient() {
    assertEquals(Optional.empty(), visited().readState(cookie));
    assertEquals(Optional.empty(), fake.readState(cookie.substring(0, cookie.length() - 2)));
    assertEquals(Optional.empty(), fake.readState(cookie + "; " + cookie));
    assertEquals(Optional.empty(), fake.readState(null));
    later(-61);
    assertEquals(Optional.empty(), fake.readState(cookie));
  }

  @Test
  void failsAsAServerThatIsGone() {
    fake.setUnavailable(true);
    assertEquals(Optional.empty(), fake.readState(cookie));
    assertEquals(List.of(), fake.may(name -> cookie, PURPOSES).purposes());
    FakeConsent strict = new FakeConsent(OnUnavailable.ERROR);
    strict.setUnavailable(true);
    String one = strict.cookieFor("u-1");
    assertEquals(Optional.empty(), strict.readState(one));
    assertEquals(ErrorKind.NETWORK, kindOf(() -> strict.currentState(one)));
    Throwable wrapped = assertThrows(CompletionException.class, () -> strict.currentStateAsync(one).join());
    assertEquals(ErrorKind.NETWORK, ((ConsentException) wrapped.getCause()).kind());
    assertNull(fake.currentState(cookie).setCookie());
  }

  @Test
  void aFutureThatIsCancelledEndsItsCall() throws IOException {
    try (ServerSocket silent = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        ConsentClient client =
            ConsentClient.builder()
                .url("http://127.0.0.1:" + silent.getLocalPort())
                .key("gpd_sk_x")
                .clock(Clock.fixed(START, ZoneOffset.UTC))
                .timeout(Duration.ofMinutes(10))
                .build()) {
      CompletableFuture<Permissions> pending = client.mayAsync(name -> cookie, PURPOSES, null);
      try (Socket connection = silent.accept()) {
        pending.cancel(true);
        assertThrows(CancellationException.class, pending::join);
        connection.setSoTimeout(60_000);
        // Ends only when the client closes the connection.
        connection.getInputStream().readAllBytes();
      }
      assertEquals(ErrorKind.CONFIG, kindOf(() -> client.readState(cookie, CallOptions.timeout(Duration.ZERO))));
    }
  }
}
