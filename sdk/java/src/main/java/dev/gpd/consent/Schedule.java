package dev.gpd.consent;

import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.util.Optional;
import java.util.regex.Pattern;

/** Computes when the next attempt starts (SPEC.md section 4). */
final class Schedule {
  private static final double BASE_MILLIS = 100;
  private static final double CAP_MILLIS = 1000;
  private static final Pattern WHOLE_SECONDS = Pattern.compile("\\d{1,9}");

  private Schedule() {}

  /** Full jitter; retry is 1 for the first. */
  static double jitterMillis(int retry, double random) {
    return random * Math.min(CAP_MILLIS, BASE_MILLIS * Math.pow(2, retry - 1));
  }

  /** Whole seconds from now, or null for an invalid header. */
  static Integer retryAfter(String header, Instant now) {
    if (header == null) return null;
    String text = header.strip();
    if (WHOLE_SECONDS.matcher(text).matches()) return Integer.valueOf(text);
    try {
      Instant at = ZonedDateTime.parse(text, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant();
      long millis = Math.max(0, Duration.between(now, at).toMillis());
      return (int) Math.min(Integer.MAX_VALUE, (millis + 999) / 1000);
    } catch (DateTimeParseException malformed) {
      return null;
    }
  }

  /** Nanoseconds to wait, or empty if that would reach the deadline. */
  static Optional<Long> waitNanos(int retry, Integer retryAfterSeconds, long remainingNanos, double random) {
    double millis = jitterMillis(retry, random) + (retryAfterSeconds == null ? 0 : retryAfterSeconds * 1000.0);
    long nanos = (long) (millis * 1_000_000);
    return nanos < remainingNanos ? Optional.of(nanos) : Optional.empty();
  }
}
