package dev.gpd.consent;

/** What a check does that cannot be decided. */
public enum OnUnavailable {
  /** A denial with reason {@code unavailable}. */
  DENY,
  /** It throws. */
  ERROR
}
