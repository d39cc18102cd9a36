package dev.gpd.consent;

import java.time.Duration;

/**
 * Options of one call.
 *
 * @param timeout total time of this call instead of the client's, at most 60 s; or null
 * @param idempotencyKey allows you to repeat the write later; null for a random one
 */
public record CallOptions(Duration timeout, String idempotencyKey) {
  public static final CallOptions NONE = new CallOptions(null, null);

  public static CallOptions timeout(Duration timeout) {
    return new CallOptions(timeout, null);
  }

  public static CallOptions idempotencyKey(String key) {
    return new CallOptions(null, key);
  }
}
