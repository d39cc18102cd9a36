package dev.gpd.consent;

/** A token for one person's browser. */
public record Session(String token, String principalId, String expiresAt) {
  /** Without the token, whose owner can act for that person. */
  @Override
  public String toString() {
    return "Session[expiresAt=" + expiresAt + "]";
  }
}
