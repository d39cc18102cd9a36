package dev.gpd.consent;

import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;

/** Options of {@link Webhooks#verify}. Not a record, which would print the secrets. */
public final class WebhookOptions {
  final List<String> secrets;
  final Duration tolerance;
  final Instant now;

  private WebhookOptions(List<String> secrets, Duration tolerance, Instant now) {
    this.secrets = secrets;
    this.tolerance = tolerance;
    this.now = now;
  }

  /** {@code whsec_…} as {@code gpd webhooks add} printed them; several while a secret is replaced. */
  public static WebhookOptions secrets(String... secrets) {
    // Without List.of, which throws for null: an unset environment variable must be refused like any invalid secret.
    List<String> list = secrets == null ? List.of() : Arrays.asList(secrets.clone());
    return new WebhookOptions(list, Duration.ofMinutes(5), null);
  }

  /** The allowed difference of a delivery's time; by default 5 minutes. */
  public WebhookOptions tolerance(Duration value) {
    return new WebhookOptions(secrets, value, now);
  }

  /** Replaces the present time. */
  public WebhookOptions now(Instant value) {
    return new WebhookOptions(secrets, tolerance, value);
  }
}
