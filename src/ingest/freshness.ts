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

/**
 * The earliest expiry that a claim of this bundle can have had. What expired later than all that was forgotten is still
 * there; of anything older nobody can say whether it was claimed, and a clock that was set back makes old bundles fresh.
 * @param skewMs the smallest by which any server may have taken it
 */
export function earliestExpiry(clientTs: number, skewMs: number): number {
  return nonceExpiry(clientTs - skewMs, skewMs);
}
