import { RETRIED } from './wire.ts';

/** Computes when the next attempt starts (SPEC.md section 4). */

const BASE_MS = 100;
const CAP_MS = 1000;

export const isRetryable = (status: number): boolean => RETRIED.has(status);

/** Full jitter. @param retry 1 for the first */
export function jitterMs(retry: number, random: number): number {
  return random * Math.min(CAP_MS, BASE_MS * 2 ** (retry - 1));
}

/** Whole seconds from now, or null for an invalid header. */
export function parseRetryAfter(value: string | null, now: number): number | null {
  if (value === null) return null;
  const text = value.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text);
  // Only an HTTP date: Date.parse would read "1.5" as a day in January.
  const at = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - now) / 1000));
}

/** @returns milliseconds to wait, or null if that would reach the deadline */
export function waitMs(
  retry: number,
  retryAfterSeconds: number | null,
  remainingMs: number,
  random: number,
): number | null {
  const wait = (retryAfterSeconds ?? 0) * 1000 + jitterMs(retry, random);
  return wait < remainingMs ? wait : null;
}
