package dev.gpd.consent;

import java.time.Instant;
import java.util.List;

/**
 * A person's choices, newest first.
 *
 * @param nextCursor requests the next page; null on the last
 */
public record History(String principalId, List<Event> events, String nextCursor) {
  /** {@code policyVersion} and {@code expiresAt} may be null. {@code overGpc} is true if the person agreed despite the signal. */
  public record Event(
      long seq, String type, String purpose, String time, Long policyVersion, boolean gpc, String source, String expiresAt, boolean overGpc) {
    /** {@code time} as a time. */
    public Instant happened() {
      return Instant.parse(time);
    }

    /** {@code expiresAt} as a time, or null for never. */
    public Instant expires() {
      return expiresAt == null ? null : Instant.parse(expiresAt);
    }
  }

  /** Selects a page; null means the server's default. */
  public record Page(String cursor, Integer limit) {
    public static final Page FIRST = new Page(null, null);
  }
}
