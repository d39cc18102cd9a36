/** Both directions: a bundle from the future is as stale as an old one. */
export function isFresh(clientTs: number, now: number, maxSkewMs: number): boolean {
  return Math.abs(now - clientTs) <= maxSkewMs;
}
