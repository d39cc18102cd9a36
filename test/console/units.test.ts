import { describe, expect, it } from 'vitest';
import { layOutChart, percentOf, periodOf, RANGES } from '../../src/console/charts.ts';
import {
  canServe,
  cookieNames,
  decryptPending,
  encryptPending,
  formatCookie,
} from '../../src/console/cookies.ts';
import { groupByName } from '../../src/console/group-counts.ts';
import { adviseDestruction } from '../../src/console/insight-pages.ts';
import { dueIn, say, timeAgo } from '../../src/console/words.ts';
import { DAY, HOUR, MINUTE } from '../../src/lib/clock.ts';
import { sha256 } from '../../src/lib/crypto.ts';
import { excerpt } from '../../src/lib/text.ts';
import { NOW, seededRandom } from '../support/make.ts';

describe('cookies', () => {
  it('over https they are __Host- and Secure; over plain http, on this machine only, neither', () => {
    expect(cookieNames('https://gpd.example').session).toBe('__Host-gpd_console');
    expect(cookieNames('http://localhost:8080').session).toBe('gpd_console');
    expect(formatCookie('__Host-a', 'v', 1000, true)).toBe(
      '__Host-a=v; HttpOnly; Secure; SameSite=Lax; Path=/; Max-Age=1',
    );
    expect(
      ['https://gpd.example', 'http://localhost:1', 'http://127.0.0.1', 'http://[::1]:8'].every(canServe),
    ).toBe(true);
    expect(['http://gpd.example', 'http://10.0.0.1', 'http://127.0.0.1.evil.example'].some(canServe)).toBe(
      false,
    );
  });

  it('a pending sign-in opens until it expires, for its own kind and answer alone, and not when it was touched', () => {
    const key = sha256('key');
    const details = { nonce: 'n', verifier: 'v', back: '/console', prompt: null };
    for (const [kind, minutes] of [
      ['provider', 10],
      ['create', 5],
      ['get', 5],
    ] as const) {
      const which = { kind, id: 's' } as const;
      const pending = { expiresAt: NOW + minutes * MINUTE, details: kind === 'provider' ? details : null };
      const cookie = encryptPending(key, seededRandom(kind), which, pending);
      expect(decryptPending(key, which, cookie, pending.expiresAt - 1)).toEqual(pending);
      expect(decryptPending(key, which, cookie, pending.expiresAt)).toBeNull();
      // It was made while a clock was over a minute ahead.
      expect(decryptPending(key, which, cookie, NOW - MINUTE - 1)).toBeNull();
      expect(decryptPending(sha256('other'), which, cookie, NOW)).toBeNull();
      expect(decryptPending(key, { kind, id: 't' }, cookie, NOW)).toBeNull();
      for (const other of ['provider', 'create', 'get'] as const)
        expect(decryptPending(key, { kind: other, id: 's' }, cookie, NOW) === null).toBe(other !== kind);
      for (const junk of ['', 'AAAA', '%', `${cookie.slice(0, -2)}AA`])
        expect(decryptPending(key, which, junk, NOW)).toBeNull();
    }
  });
});

describe('text', () => {
  it('an excerpt is cut between characters', () => {
    expect(excerpt('👩👩👩👩', 3)).toBe('👩👩…');
    expect(excerpt(' a \n b ', 10)).toBe('a b');
  });
});

describe('the clock of a contest', () => {
  it.each([
    [7 * DAY, 'due in 7 days', 'calm'],
    [7 * DAY - 1, 'due in 6 days', 'soon'],
    [2 * DAY - 1, 'due in 1 day', 'urgent'],
    [2 * HOUR - 1, 'due in 1 hour', 'urgent'],
    [0, 'due within the hour', 'urgent'],
    [-1, 'overdue by less than an hour', 'late'],
    [-HOUR, 'overdue by 1 hour', 'late'],
    [-DAY + 1, 'overdue by 23 hours', 'late'],
    [-DAY, 'overdue by 1 day', 'late'],
    [-9 * DAY - 1, 'overdue by 9 days', 'late'],
  ])('%d ms: %s', (remainingMs, text, level) => {
    expect(dueIn(NOW + remainingMs, NOW)).toEqual({ text, level });
  });
});

describe('the chart', () => {
  const settled = Math.floor(NOW / HOUR) * HOUR;
  const at = (hoursAgo: number): number => settled - hoursAgo * HOUR;
  const [range] = RANGES;
  const period = periodOf(range, settled);
  const layOut = (rows: readonly { hour: number; name: string; n: number }[]) =>
    layOutChart(
      groupByName(rows, ['human', 'unknown'], { floor: 50, until: settled }),
      ['human', 'unknown'],
      {
        range,
        period,
        peakOf: 'unknown',
      },
    );

  it('bars stand on zero, one upon the other, and half of the axis is a plain number', () => {
    const chart = layOut([
      { hour: at(2), name: 'human', n: 200 },
      { hour: at(2), name: 'unknown', n: 100 },
      { hour: at(1), name: 'human', n: 60 },
    ]);
    expect(chart.top).toBe(400);
    const [people, unsure] = chart.bars[22]?.parts ?? [];
    expect(people?.y).toBe(chart.height / 2);
    expect(unsure?.y).toBe(chart.height / 4);
    expect(chart.bars[23]?.parts.map(({ y }) => y)).toEqual([chart.height * (1 - 60 / 400)]);
  });

  it('a group of several hours is as high as their average', () => {
    const chart = layOut([
      { hour: at(4), name: 'human', n: 40 },
      { hour: at(3), name: 'human', n: 1 },
      { hour: at(1), name: 'human', n: 39 },
    ]);
    expect(chart.series[0]?.rates.slice(19)).toEqual([0, 20, 20, 20, 20]);
    expect(chart.series[0]?.cells).toEqual([{ slot: 0, span: 24, n: 80 }]);
  });

  it('the highest hour of a class has a label if it is twice the average', () => {
    const even = [5, 4, 3, 2, 1].map((hour) => ({ hour: at(hour), name: 'unknown', n: 60 }));
    expect(layOut(even.map((row) => ({ ...row, hour: row.hour - 19 * HOUR })).concat(even)).peak?.n).toBe(60);
    const spike = { hour: at(2), name: 'unknown', n: 600 };
    const rows = Array.from({ length: 24 }, (_, i) => ({ hour: at(24 - i), name: 'unknown', n: 60 }));
    expect(layOut(rows).peak).toBeNull();
    expect(layOut(rows.map((row) => (row.hour === spike.hour ? spike : row))).peak).toMatchObject({
      at: at(2),
      n: 600,
    });
  });

  it('a range ends with its last complete slot', () => {
    for (const { step, slots } of RANGES) {
      const { from, until, before } = periodOf({ step, slots }, settled);
      expect(until % step).toBe(0);
      expect([until - from, from - before]).toEqual([step * slots, step * slots]);
      expect(settled - until).toBeLessThan(step);
    }
  });

  it('a share has one digit, and none without visits', () => {
    expect([percentOf(1, 3), percentOf(0, 0)]).toEqual(['33.3', null]);
  });
});

describe('advice about a key', () => {
  const key = {
    generation: 1,
    state: 'retiring' as const,
    createdAt: NOW - 90 * DAY,
    publishedAt: NOW - 80 * DAY,
    retiresAt: NOW + DAY,
    destroyedAt: null,
    bundles: 5,
    lastAt: NOW - 2 * DAY,
  };
  it.each([
    [{}, 'safe'],
    [{ lastAt: NOW - HOUR }, 'in-use'],
    [{ lastAt: null, publishedAt: NOW - HOUR }, 'wait'],
    [{ lastAt: null }, 'safe'],
    [{ state: 'published' }, 'published'],
    [{ state: 'staged' }, 'staged'],
    [{ state: 'destroyed' }, 'destroyed'],
  ] as const)('%j: %s', (over, words) => {
    expect(adviseDestruction({ ...key, ...over }, NOW)).toBe(words);
  });
});

it('numbers are grouped, and one is singular', () => {
  expect(say('more than {n}', { n: 10_000 })).toBe('more than 10,000');
  expect(timeAgo(NOW - DAY * 2, NOW)).toBe('2 days ago');
  expect(timeAgo(NOW - HOUR, NOW)).toBe('1 hour ago');
});
