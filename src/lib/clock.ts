/** Epoch milliseconds. Every domain is handed one: none asks the system for the time. */
export type Clock = () => number;

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** RFC 3339 in UTC with milliseconds, the one form in which gpd writes a moment. */
export function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

/** Null for what has not happened. */
export const iso = (epochMs: number | null): string | null => (epochMs === null ? null : isoTime(epochMs));
