package dev.gpd.consent;

import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;

/** A client for your tests whose calls are answered from memory. It allows only what was granted, and is safe for many threads. */
public final class FakeConsent extends ConsentClient {
  /**
   * A recorded call.
   *
   * @param args the arguments without the options
   */
  public record Call(String method, List<Object> args) {}

  /** Effect of Global Privacy Control on a purpose. */
  public enum GpcPolicy {
    OPT_OUT,
    ASK,
    IGNORE
  }

  /** A clock that can be replaced while the client keeps it. */
  private static final class Hand extends Clock {
    private volatile Clock clock = Clock.systemUTC();

    @Override
    public ZoneId getZone() {
      return ZoneOffset.UTC;
    }

    @Override
    public Clock withZone(ZoneId zone) {
      return this;
    }

    @Override
    public Instant instant() {
      return clock.instant();
    }
  }

  private final FakeServer server;
  private final Hand hand;

  public FakeConsent() {
    this(OnUnavailable.DENY);
  }

  public FakeConsent(OnUnavailable onUnavailable) {
    this(onUnavailable, new Hand());
  }

  private FakeConsent(OnUnavailable onUnavailable, Hand hand) {
    this(
        new FakeServer(
            new Settings(
                List.of("http://fake.example"), "fake", Duration.ofSeconds(2), Duration.ofSeconds(10), 0, onUnavailable, null, hand, error -> {})),
        hand);
  }

  private FakeConsent(FakeServer server, Hand hand) {
    super(server);
    this.server = server;
    this.hand = hand;
  }

  /** Sets the clock of grants and cookies; the system's if it was not set. */
  public void setClock(Clock value) {
    hand.clock = value;
  }

  /** Sets the domain of cookies, as that of the client. */
  public void setCookieDomain(String domain) {
    server.settings.cookieDomain = domain;
  }

  /** Returns a {@code Cookie} header as this person's browser would send it now. Later it is as old as the clock says. */
  public String cookieFor(String principalId) {
    Rules.principal("cookieFor", principalId);
    synchronized (server) {
      return SignedState.COOKIE + "=" + server.sign(principalId, false).get("state");
    }
  }

  /** All calls, in order. */
  public List<Call> calls() {
    synchronized (server) {
      return List.copyOf(server.calls);
    }
  }

  /** Makes all further calls fail as if the server were down, or work again. */
  public void setUnavailable(boolean unavailable) {
    synchronized (server) {
      server.isUnavailable = unavailable;
    }
  }

  /** Makes the next call that reaches the server fail once with this kind; {@code code} may be null. */
  public void setNextError(ErrorKind kind, String code) {
    synchronized (server) {
      server.nextKind = kind;
      server.nextCode = code;
    }
  }

  /** Sets the only purposes that exist. Without it every purpose is known. */
  public void setPurposes(String... purposes) {
    synchronized (server) {
      server.log.known = new LinkedHashSet<>(List.of(purposes));
    }
  }

  /** Sets the days after which a grant of this purpose expires by the clock; without it never. */
  public void setTtlDays(String purpose, double days) {
    synchronized (server) {
      server.log.ttlDays.put(purpose, days);
    }
  }

  /** Sets the effect of Global Privacy Control on a purpose; OPT_OUT if it was not set. */
  public void setGpcPolicy(String purpose, GpcPolicy policy) {
    synchronized (server) {
      server.log.setGpcPolicy(purpose, policy);
    }
  }

  /** Sets what {@link #agent} answers about signed requests; without it their keys are not known. */
  public void setAgent(AgentAnswer answer) {
    synchronized (server) {
      server.agent = answer;
    }
  }

  /** Sets the verdict that {@link #decision} returns for this request. */
  public void setDecision(String requestId, Verdict verdict) {
    Map<String, Object> fields = new HashMap<>(verdict.fields());
    fields.put("requestId", requestId);
    fields.put("class", verdict.verdictClass());
    fields.put("reason", verdict.reason());
    fields.put("decidedAt", verdict.decidedAt());
    fields.put("restricted", verdict.restricted());
    fields.put("visitorId", verdict.visitorId());
    fields.put("confidence", verdict.confidence());
    fields.put("suspectScore", verdict.suspectScore());
    synchronized (server) {
      server.verdicts.put(requestId, fields);
    }
  }
}
