package dev.gpd.consent;

import java.util.List;

/**
 * What a person said, newest first.
 *
 * @param nextCursor for the next page; null on the last
 */
public record History(String principalId, List<Event> events, String nextCursor) {
  /** {@code policyVersion} and {@code expiresAt} may be null. {@code overGpc}: the person overruled the signal. */
  public record Event(
      long seq, String type, String purpose, String time, Long policyVersion, boolean gpc, String source, String expiresAt, boolean overGpc) {}

  /** Which part of it; null for the server's default. */
  public record Page(String cursor, Integer limit) {
    public static final Page FIRST = new Page(null, null);
  }
}
