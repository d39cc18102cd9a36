package dev.gpd.consent;

import java.util.List;
import java.util.Map;

/**
 * The entry that a proof proves.
 *
 * @param entry the decoded JSON; {@code subject} and {@code body} of a personal entry are commitments
 * @param origin the log's name
 * @param size size of the log that the checkpoint signs
 * @param witnesses the required witnesses that have cosigned
 */
public record ProvenEntry(
    long seq,
    String hash,
    Map<String, Object> entry,
    String origin,
    long size,
    String root,
    List<Cosigner> witnesses) {
  /** @param time epoch seconds; then it knew no larger tree of the log */
  public record Cosigner(String name, long time) {}
}
