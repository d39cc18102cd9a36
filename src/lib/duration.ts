import { DAY, HOUR, MINUTE, SECOND } from './clock.ts';

const UNITS: Readonly<Record<string, number>> = { s: SECOND, m: MINUTE, h: HOUR, d: DAY };

/** Parses `30s`, `15m`, `12h`, `7d` (also `0d`) into milliseconds, or returns null. */
export function parseDuration(text: string): number | null {
  const match = /^(\d{1,6})([smhd])$/.exec(text);
  const unit = match?.[2] === undefined ? undefined : UNITS[match[2]];
  return match && unit !== undefined ? Number(match[1]) * unit : null;
}
