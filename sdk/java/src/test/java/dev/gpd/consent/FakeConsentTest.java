package dev.gpd.consent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Test;

/** Parts of the fake that no shared case can see. */
class FakeConsentTest {
  @Test
  void remembersItsCalls() {
    FakeConsent fake = new FakeConsent();
    fake.setDecision("req_1", Verdict.of("req_1", "human"));
    fake.decision("req_1");
    fake.sessions().create("u-1");
    fake.reportOutcome("req_1", "fraud", "2026", CallOptions.NONE);
    List<FakeConsent.Call> expected =
        List.of(
            new FakeConsent.Call("decision", List.of("req_1")),
            new FakeConsent.Call("sessions.create", List.of("u-1")),
            new FakeConsent.Call("reportOutcome", List.of("req_1", "fraud", "2026")));
    assertEquals(expected, fake.calls());
  }

  @Test
  void aFutureEndsWithTheErrorItself() {
    FakeConsent fake = new FakeConsent();
    fake.setUnavailable(true);
    Throwable wrapped = assertThrows(CompletionException.class, () -> fake.pingAsync().join());
    assertEquals(ErrorKind.NETWORK, ((ConsentException) wrapped.getCause()).kind());
  }
}
