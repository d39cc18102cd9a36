package dev.gpd.consent;

import java.util.List;

/** A person's latest choice for each purpose; {@code subject} is the reference of events about the person, or null. */
public record ConsentState(String principalId, List<PurposeState> purposes, String subject) {
  /**
   * @param choice null if the person was never asked
   * @param at null if the person was never asked
   */
  public record PurposeState(String purpose, String choice, String at, Decision decision) {}
}
