/** Epoch milliseconds. Every room gets a clock: none asks the system for the time. */
export type Clock = () => number;

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** RFC 3339 in UTC with milliseconds: the only form in which gpd writes a time. */
export function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

/** Null if it has not happened. */
export const iso = (epochMs: number | null): string | null => (epochMs === null ? null : isoTime(epochMs));

/** A part of each day in UTC, in milliseconds since midnight; it may end on the next day. */
export interface DailyWindow {
  readonly from: number;
  readonly to: number;
}

/** @param text `HH:MM-HH:MM`; null: invalid */
export function parseDailyWindow(text: string): DailyWindow | null {
  const match = /^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)$/.exec(text);
  if (!match) return null;
  const [fromHour = 0, fromMinute = 0, toHour = 0, toMinute = 0] = match.slice(1).map(Number);
  const [from, to] = [(fromHour * 60 + fromMinute) * MINUTE, (toHour * 60 + toMinute) * MINUTE];
  return from === to ? null : { from, to };
}

export function isWithin({ from, to }: DailyWindow, now: number): boolean {
  const time = now % DAY;
  return from < to ? time >= from && time < to : time >= from || time < to;
}
