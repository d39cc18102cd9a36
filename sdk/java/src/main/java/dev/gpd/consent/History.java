package dev.gpd.consent;

import java.util.List;

/**
 * A person's choices, newest first.
 *
 * @param nextCursor requests the next page; null on the last
 */
public record History(String principalId, List<Event> events, String nextCursor) {
  /** {@code policyVersion} and {@code expiresAt} may be null. {@code overGpc} is true if the person agreed despite the signal. */
  public record Event(
      long seq, String type, String purpose, String time, Long policyVersion, boolean gpc, String source, String expiresAt, boolean overGpc) {}

  /** Selects a page; null means the server's default. */
  public record Page(String cursor, Integer limit) {
    public static final Page FIRST = new Page(null, null);
  }
}
