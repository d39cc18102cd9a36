package dev.gpd.consent;

import java.time.Duration;

/**
 * Of one call.
 *
 * @param timeout the whole time of this call in place of the client's, shorter or longer, at most 60 s; or null
 * @param idempotencyKey names a write to be able to repeat it later; null for one of its own
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
