import { beforeAll, describe, expect, it } from 'vitest';
import { DAY, HOUR } from '../../src/lib/clock.ts';
import { KID } from '../support/constants.ts';
import { started } from '../support/started.ts';
import { signIn, startConsole, type Visitor } from './support/console.ts';
import { change } from './support/data.ts';

/** A count of few people is hidden in the console, and no number beside it tells it: the tests read the pages as an attacker would. */

const FLOOR = 50;

const site = started(() => startConsole());
let dora: Visitor;
beforeAll(async () => {
  dora = await signIn(site.url, 'dora');
});

interface Shown {
  readonly low: number;
  readonly high: number;
}

/** Parses a shown count: "218", "under 50", "at least 218". */
function read(text: string): Shown {
  const n = Number(text.replaceAll(',', '').match(/\d+/)?.[0]);
  if (/under/.test(text)) return { low: 1, high: n - 1 };
  return { low: n, high: /at least/.test(text) ? Number.POSITIVE_INFINITY : n };
}

/** The values that are possible for one part, given the other parts and their sum. */
function narrow(parts: readonly Shown[], i: number, sum: Shown): Shown {
  const rest = parts.filter((_, at) => at !== i);
  const add = (key: 'low' | 'high') => rest.reduce((all, one) => all + one[key], 0);
  const { low, high } = parts[i]!;
  return { low: Math.max(low, sum.low - add('high')), high: Math.min(high, sum.high - add('low')) };
}

function expectHidden(parts: readonly Shown[], sum: Shown): void {
  for (const [i, part] of parts.entries()) {
    if (part.low === part.high || part.high >= FLOOR) continue;
    const { low, high } = narrow(parts, i, sum);
    expect(high - low).toBeGreaterThanOrEqual(FLOOR / 2);
  }
}

const section = (text: string, id: string): string =>
  new RegExp(`aria-labelledby="${id}">(.*?)</section>`, 's').exec(text)?.[1] ?? '';

function readChart(html: string) {
  const totals = [...html.matchAll(/<strong>([^<]+)<\/strong>/g)].map(([, text]) => read(text ?? ''));
  const rows = [...html.matchAll(/<tr>\s*<th scope="row">.*?<\/tr>/gs)].map(([row]) =>
    [...row.matchAll(/<td class="number">([^<]+)<\/td>/g)].map(([, text]) => read(text ?? '')),
  );
  return { totals, columns: totals.map((_, i) => rows.map((row) => row[i]!)) };
}

/** Counts by class and hours ago. */
async function seed(counts: Readonly<Record<string, readonly number[]>>): Promise<void> {
  const now = Math.floor(Date.now() / HOUR) * HOUR;
  const rows = Object.entries(counts).flatMap(([name, hours]) =>
    hours.map((n, i) => ({ kid: KID, kind: 'verdict', hour: now - i * HOUR, name, n })),
  );
  await change(site, async (tx) => {
    await tx('tallies').where({ kid: KID }).delete();
    await tx('tallies').insert(rows.filter(({ n }) => n > 0));
  });
}

describe('the overview', () => {
  const spread = Array.from({ length: 24 }, () => 12);
  it.each([
    [{ undeclared_automation: [218], human: [13] }, 'At least 218'],
    [{ undeclared_automation: [211, 7] }, 'At least 211'],
    [{ undeclared_automation: [211, 7, 9] }, 'At least 211'],
    [{ human: [30, 20] }, '50'],
    [{ human: [30, 21] }, 'At least 50'],
    [{ human: [49, 49] }, 'At least 50'],
    [{ human: spread, unknown: [60] }, '348'],
    [{ human: spread, unknown: [13] }, 'At least 288'],
    [{ human: [49, 49, 49], unknown: [100] }, 'At least 150'],
    [{ human: [1, 1, 1], unknown: [2] }, 'Fewer than 50'],
    [{ human: [70, 80] }, '150'],
  ])('%j: %s', async (counts, headline) => {
    await seed(counts);
    const { text } = await dora.get('/console/overview');
    const shown = / class="lead">([^<]+) visits in the last 24 hours/.exec(text)?.[1] ?? '';
    expect(shown).toBe(headline);
    const { totals, columns } = readChart(section(text, 'verdicts-title'));
    expect(totals).toHaveLength(4);
    expect(columns[0]).toHaveLength(24);
    for (const [i, total] of totals.entries()) expectHidden(columns[i]!, total);
    expectHidden(totals, read(shown.replace('Fewer than', 'under').toLowerCase()));
  });

  it('the days of consent hide in the same way', async () => {
    const today = Math.floor(Date.now() / DAY) * DAY;
    await change(site, async (tx) => {
      await tx('tallies').where({ kid: KID }).delete();
      await tx('tallies').insert([
        { kid: KID, kind: 'consent', hour: today, name: 'granted', n: 300 },
        { kid: KID, kind: 'consent', hour: today - DAY, name: 'granted', n: 4 },
      ]);
    });
    const { totals, columns } = readChart(
      section((await dora.get('/console/overview')).text, 'consent-title'),
    );
    expect(totals[0]).toEqual({ low: 300, high: Number.POSITIVE_INFINITY });
    expectHidden(columns[0]!, totals[0]!);
  });
});

describe('the purposes', () => {
  it.each([
    [6, 0, 'fewer than 50 in 30 days'],
    [6, 3, 'fewer than 50 in 30 days'],
    [120, 0, '0 of 120 in 30 days'],
    [120, 13, 'fewer than 50 of 120 in 30 days'],
    [120, 107, 'nearly all of 120 in 30 days'],
    [60, 30, 'some of 60 in 30 days'],
    [120, 60, '60 of 120 in 30 days'],
    [60, 60, '60 of 60 in 30 days'],
  ])('%d page loads, %d with GPC: %s', async (all, gpc, sentence) => {
    const hour = Math.floor(Date.now() / HOUR) * HOUR;
    await change(site, async (tx) => {
      await tx('tallies').where({ kid: KID, kind: 'visit' }).delete();
      await tx('tallies').insert([
        { kid: KID, kind: 'visit', hour, name: 'all', n: all },
        { kid: KID, kind: 'visit', hour, name: 'gpc', n: gpc },
      ]);
    });
    const { text } = await dora.get('/console/terms');
    expect(/<dt>Page loads with Global Privacy Control<\/dt>\s*<dd>([^<]*)</.exec(text)?.[1]).toBe(sentence);
  });
});

describe('the keys', () => {
  it.each([
    [13, 'under 50'],
    [231, 'at least 100'],
    [12_345, 'at least 10,000'],
    [50, 'at least 50'],
    [0, '0'],
  ])('%d bundles of a generation: %s', async (bundles, shown) => {
    const day = Math.floor(Date.now() / DAY);
    await change(site, async (tx) => {
      await tx('key_traffic').where({ kid: KID }).delete();
      await tx('key_traffic').insert({ kid: KID, generation: 1, day, bundles, last_at: Date.now() });
    });
    const { text } = await dora.get('/console/keys');
    expect(/data-label="Bundles, 30 days">([^<]+)</.exec(text)?.[1]).toBe(shown);
  });
});
