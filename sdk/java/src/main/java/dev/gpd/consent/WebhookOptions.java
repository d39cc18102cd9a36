package dev.gpd.consent;

import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;

/** For {@link Webhooks#verify}. No record: it would print the secrets. */
public final class WebhookOptions {
  final List<String> secrets;
  final Duration tolerance;
  final Instant now;

  private WebhookOptions(List<String> secrets, Duration tolerance, Instant now) {
    this.secrets = secrets;
    this.tolerance = tolerance;
    this.now = now;
  }

  /** {@code whsec_…} as {@code gpd webhooks add} printed them; several during a change of secret. */
  public static WebhookOptions secrets(String... secrets) {
    // No List.of: an environment variable that is not set is null, and refused as every other wrong secret.
    List<String> given = secrets == null ? List.of() : Arrays.asList(secrets.clone());
    return new WebhookOptions(given, Duration.ofMinutes(5), null);
  }

  /** How far the time of a delivery may be off; 5 minutes. */
  public WebhookOptions tolerance(Duration value) {
    return new WebhookOptions(secrets, value, now);
  }

  /** In place of today's time. */
  public WebhookOptions now(Instant value) {
    return new WebhookOptions(secrets, tolerance, value);
  }
}
