package dev.gpd.consent;

import java.util.List;

/** One entry per purpose. {@code seq} and {@code hash} of the result are those of the last entry. */
public record WriteResult(List<Entry> entries, long seq, String hash) {
  public record Entry(String purpose, long seq, String hash) {}
}
