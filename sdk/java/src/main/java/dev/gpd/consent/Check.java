package dev.gpd.consent;

/**
 * Asks whether one person's data may be processed for one purpose.
 *
 * @param principalId your own id of the person
 * @param minSeq decide only from a log that has reached this entry, such as the {@code seq} of a write; or null. Not for a batch.
 */
public record Check(String principalId, String purpose, Long minSeq) {
  public static Check of(String principalId, String purpose) {
    return new Check(principalId, purpose, null);
  }

  public Check withMinSeq(long seq) {
    return new Check(principalId, purpose, seq);
  }
}
