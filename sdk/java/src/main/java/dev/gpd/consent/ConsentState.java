package dev.gpd.consent;

import java.util.List;

/** Returns a person's latest choice for each purpose. */
public record ConsentState(String principalId, List<PurposeState> purposes) {
  /**
   * @param choice null if the person was never asked
   * @param at null if the person was never asked
   */
  public record PurposeState(String purpose, String choice, String at, Decision decision) {}
}
