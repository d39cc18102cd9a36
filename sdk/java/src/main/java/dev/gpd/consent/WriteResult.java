package dev.gpd.consent;

import java.util.List;

/** One entry a purpose; {@code seq} and {@code hash} beside are the last one's. */
public record WriteResult(List<Entry> entries, long seq, String hash) {
  public record Entry(String purpose, long seq, String hash) {}
}
