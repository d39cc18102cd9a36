package dev.gpd.consent;

import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.util.Locale;

/** A verdict as advice to a checkout. It never refuses. */
public enum Advice {
  PROCEED,
  STEP_UP,
  NO_VERDICT;

  /** A visitor can send the id of an old visit. The page calls {@code identify} or {@code update} again at the checkout. */
  private static final Duration MAX_AGE = Duration.ofMinutes(30);

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  /** @param context null compares nothing */
  static Advice of(Verdict verdict, String context, Instant now) {
    if (context != null && !context.equals(verdict.fields().get("context"))) return NO_VERDICT;
    try {
      boolean isOld = Instant.parse(verdict.decidedAt()).plus(MAX_AGE).isBefore(now);
      // A verdict under an objection must not be acted on.
      if (verdict.restricted() || isOld) return NO_VERDICT;
    } catch (DateTimeException malformed) {
      return NO_VERDICT;
    }
    return verdict.verdictClass().equals("human") ? PROCEED : STEP_UP;
  }
}
