/** Both directions: a bundle from the future is as stale as an old one. */
export function isFresh(clientTs: number, now: number, maxSkewMs: number): boolean {
  return Math.abs(now - clientTs) <= maxSkewMs;
}

/**
 * When a nonce may be forgotten: at least twice the skew, and never while the bundle that carried it is fresh. A
 * future-dated bundle stays fresh for clientTs + skew, at most now + 2 × skew; one more skew covers clocks that differ
 * between nodes.
 */
export function nonceExpiry(now: number, maxSkewMs: number): number {
  return now + 3 * maxSkewMs;
}
