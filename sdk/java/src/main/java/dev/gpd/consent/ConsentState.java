package dev.gpd.consent;

import java.util.List;

/** What a person said last, purpose by purpose. */
public record ConsentState(String principalId, List<PurposeState> purposes) {
  /**
   * @param choice null when nobody asked
   * @param at null when nobody asked
   */
  public record PurposeState(String purpose, String choice, String at, Decision decision) {}
}
