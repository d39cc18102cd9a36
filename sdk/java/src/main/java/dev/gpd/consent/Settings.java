package dev.gpd.consent;

import java.time.Clock;
import java.time.Duration;

/** Validated options. Not a record, which would print the key. */
final class Settings {
  final String base;
  final String key;
  final Duration timeout;
  final Duration writeTimeout;
  final int retries;
  final OnUnavailable onUnavailable;
  /** May be null. */
  final String cookieDomain;
  final Clock clock;

  Settings(
      String base,
      String key,
      Duration timeout,
      Duration writeTimeout,
      int retries,
      OnUnavailable onUnavailable,
      String cookieDomain,
      Clock clock) {
    this.base = base;
    this.key = key;
    this.timeout = timeout;
    this.writeTimeout = writeTimeout;
    this.retries = retries;
    this.onUnavailable = onUnavailable;
    this.cookieDomain = cookieDomain;
    this.clock = clock;
  }
}
