package dev.gpd.consent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class FakeConsentTest {
  private static final ConsentWrite WRITE = ConsentWrite.of("u-1", "newsletter");

  private static ErrorKind kindOf(Executable call) {
    return assertThrows(ConsentException.class, call).kind();
  }

  @Test
  void allowsNothingThatWasNotGranted() {
    FakeConsent fake = new FakeConsent();
    assertFalse(fake.isAllowed("u-1", "newsletter"));
    assertEquals("never-asked", fake.canProcess("u-1", "newsletter").reason());
    fake.grant(WRITE);
    assertTrue(fake.isAllowed("u-1", "newsletter"));
    assertTrue(fake.isAllowedAsync("u-1", "newsletter").join());
    assertFalse(fake.isAllowed("u-2", "newsletter"));
    assertFalse(fake.isAllowed("u-1", "support"));
  }

  @Test
  void followsTheLastWord() {
    FakeConsent fake = new FakeConsent();
    fake.grant(WRITE);
    WriteResult withdrawn = fake.withdraw(WRITE);
    Decision decision = fake.canProcess("u-1", "newsletter");
    assertEquals("withdrawn", decision.reason());
    assertEquals(new ProofRef(withdrawn.seq(), withdrawn.hash()), decision.proof());
    fake.deny(WRITE);
    assertEquals("denied", fake.canProcessMany(List.of(Check.of("u-1", "newsletter"))).get(0).reason());
    assertEquals("denied", fake.state("u-1").purposes().get(0).choice());
    History page = fake.history("u-1", new History.Page(null, 2), CallOptions.NONE);
    assertEquals(List.of("consent.denied", "consent.withdrawn"), page.events().stream().map(History.Event::type).toList());
    History rest = fake.history("u-1", new History.Page(page.nextCursor(), 2), CallOptions.NONE);
    assertEquals(List.of("consent.granted"), rest.events().stream().map(History.Event::type).toList());
    assertNull(rest.nextCursor());
  }

  @Test
  void failsAsAServerThatIsGone() {
    FakeConsent fake = new FakeConsent();
    fake.grant(WRITE);
    fake.setUnavailable(true);
    Decision denial = fake.canProcess("u-1", "newsletter");
    assertEquals("unavailable", denial.reason());
    assertNull(denial.proof());
    assertEquals(ErrorKind.NETWORK, denial.error().kind());
    assertEquals(ErrorKind.NETWORK, kindOf(() -> fake.grant(WRITE)));
    fake.setUnavailable(false);
    assertTrue(fake.isAllowed("u-1", "newsletter"));
    FakeConsent strict = new FakeConsent(OnUnavailable.ERROR);
    strict.setUnavailable(true);
    assertEquals(ErrorKind.NETWORK, kindOf(() -> strict.isAllowed("u-1", "newsletter")));
    Throwable wrapped = assertThrows(CompletionException.class, () -> strict.pingAsync().join());
    assertEquals(ErrorKind.NETWORK, ((ConsentException) wrapped.getCause()).kind());
  }

  @Test
  void refusesWhatTheClientRefuses() {
    FakeConsent fake = new FakeConsent();
    assertEquals(ErrorKind.INVALID_REQUEST, kindOf(() -> fake.isAllowed("", "a")));
    assertEquals(ErrorKind.NOT_FOUND, kindOf(() -> fake.receipt(1)));
    assertEquals(ErrorKind.NOT_FOUND, kindOf(() -> fake.proof(1)));
    assertEquals(ErrorKind.NOT_FOUND, kindOf(() -> fake.decision("req_1")));
    fake.close();
    assertEquals(ErrorKind.CONFIG, kindOf(fake::ping));
  }

  @Test
  void answersVerdictsAndRemembersCalls() {
    FakeConsent fake = new FakeConsent();
    fake.setDecision("req_1", Verdict.of("req_1", "undeclared_automation"));
    assertEquals("undeclared_automation", fake.decision("req_1").verdictClass());
    fake.sessions().create("u-1");
    List<FakeConsent.Call> expected =
        List.of(
            new FakeConsent.Call("decision", List.of("req_1")),
            new FakeConsent.Call("sessions.create", List.of("u-1")));
    assertEquals(expected, fake.calls());
  }

  @Test
  void storesAnOutcomeOnceOfADecisionThatItWasGiven() {
    FakeConsent fake = new FakeConsent();
    assertEquals(ErrorKind.NOT_FOUND, kindOf(() -> fake.reportOutcome("req_1", "fraud")));
    fake.setDecision("req_1", Verdict.of("req_1", "human"));
    String at = "2026-05-04T10:00:00.000Z";
    ReportedOutcome stored = new ReportedOutcome("req_1", "fraud", at);
    assertEquals(stored, fake.reportOutcome("req_1", "fraud", at, CallOptions.NONE));
    assertEquals(stored, fake.reportOutcomeAsync("req_1", "fraud").join());
    assertEquals(ErrorKind.CONFLICT, kindOf(() -> fake.reportOutcome("req_1", "other")));
    assertEquals(ErrorKind.CONFLICT, kindOf(() -> fake.reportOutcome("req_1", "fraud", "2026", CallOptions.NONE)));
    assertEquals(ErrorKind.INVALID_REQUEST, kindOf(() -> fake.reportOutcome("req_1", "")));
    FakeConsent.Call last = fake.calls().get(fake.calls().size() - 1);
    assertEquals(new FakeConsent.Call("reportOutcome", List.of("req_1", "fraud", "2026")), last);
    fake.setUnavailable(true);
    assertEquals(ErrorKind.NETWORK, kindOf(() -> fake.reportOutcome("req_1", "fraud")));
  }
}
