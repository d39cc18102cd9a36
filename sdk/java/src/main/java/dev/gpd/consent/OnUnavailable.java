package dev.gpd.consent;

/** The result of a check that cannot be decided. */
public enum OnUnavailable {
  /** A denial with reason {@code unavailable}. */
  DENY,
  /** The check throws. */
  ERROR
}
