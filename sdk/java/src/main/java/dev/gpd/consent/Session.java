package dev.gpd.consent;

import java.time.Instant;

/** A token for one person's browser; {@code subject} is the reference that the events subject.erased and subject.linked carry. */
public record Session(String token, String principalId, String expiresAt, String subject) {
  /** A session without a reference. */
  public Session(String token, String principalId, String expiresAt) {
    this(token, principalId, expiresAt, null);
  }

  /** {@code expiresAt} as a time. */
  public Instant expires() {
    return Instant.parse(expiresAt);
  }

  /** Without the token, whose owner can act for that person. */
  @Override
  public String toString() {
    return "Session[expiresAt=" + expiresAt + "]";
  }
}
