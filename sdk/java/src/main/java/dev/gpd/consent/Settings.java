package dev.gpd.consent;

import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;

/** Validated options. Not a record, which would print the key. */
final class Settings {
  /** At least one. */
  final List<String> bases;
  final String key;
  final Duration timeout;
  final Duration writeTimeout;
  final int retries;
  final OnUnavailable onUnavailable;
  /** May be null. */
  volatile String cookieDomain;
  final Clock clock;
  final Consumer<ConsentException> onError;

  Settings(
      List<String> bases,
      String key,
      Duration timeout,
      Duration writeTimeout,
      int retries,
      OnUnavailable onUnavailable,
      String cookieDomain,
      Clock clock,
      Consumer<ConsentException> onError) {
    this.bases = bases;
    this.key = key;
    this.timeout = timeout;
    this.writeTimeout = writeTimeout;
    this.retries = retries;
    this.onUnavailable = onUnavailable;
    this.cookieDomain = cookieDomain;
    this.clock = clock;
    this.onError = onError;
  }
}
