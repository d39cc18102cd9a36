package dev.gpd.consent;

import java.util.List;
import java.util.Map;

/**
 * What a proof proves.
 *
 * @param entry as JSON tells it; {@code subject} and {@code body} of a personal one are commitments
 * @param origin the log's name
 * @param size of the log that the checkpoint signs
 * @param witnesses which of those asked for cosigned
 */
public record ProvenEntry(
    long seq,
    String hash,
    Map<String, Object> entry,
    String origin,
    long size,
    String root,
    List<Cosigner> witnesses) {
  /** @param time epoch seconds at which it saw this tree as the longest of the log */
  public record Cosigner(String name, long time) {}
}
