import { expect, it } from 'vitest';
import { HOUR, isWithin, parseDailyWindow } from '../../src/lib/clock.ts';

const MIDNIGHT = Date.UTC(2026, 10, 22);

it.each([
  ['02:00-04:00', [2, 3.99], [1.99, 4, 12]],
  ['23:30-01:00', [23.5, 0, 0.99], [1, 23.49]],
])('%s contains its hours in UTC, and its end no more', (text, inside, outside) => {
  const window = parseDailyWindow(text)!;
  for (const hours of inside) expect(isWithin(window, MIDNIGHT + hours * HOUR), `${hours}`).toBe(true);
  for (const hours of outside) expect(isWithin(window, MIDNIGHT + hours * HOUR), `${hours}`).toBe(false);
});

it.each(['', '2:00-4:00', '02:00', '24:00-01:00', '02:60-03:00', '02:00-02:00', '02:00-04:00 '])(
  '%j is none',
  (text) => expect(parseDailyWindow(text)).toBeNull(),
);
