import { beforeAll, describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../src/lib/clock.ts';
import { KID } from '../support/constants.ts';
import { started } from '../support/started.ts';
import { signIn, startConsole, type Visitor } from './support/console.ts';
import { change } from './support/data.ts';

/** A count of few people is hidden in the console, and no number beside it tells it: the tests read the pages as an attacker would. */

const site = started(() => startConsole());
let dora: Visitor;
beforeAll(async () => {
  dora = await signIn(site.url, 'dora');
});

/** Counts by class and hours ago. The hours of the overview end some minutes after the clock's. */
async function seed(counts: Readonly<Record<string, readonly number[]>>): Promise<void> {
  const now = Math.floor((Date.now() - 10 * MINUTE) / HOUR) * HOUR;
  const rows = Object.entries(counts).flatMap(([name, hours]) =>
    hours.map((n, i) => ({ kid: KID, kind: 'verdict', hour: now - (i + 1) * HOUR, name, n })),
  );
  await change(site, async (tx) => {
    await tx('tallies').where({ kid: KID }).delete();
    const counted = rows.filter(({ n }) => n > 0);
    if (counted.length > 0) await tx('tallies').insert(counted);
    await tx('tally_marks')
      .insert({ kid: KID, kind: 'verdict', upto: Date.now() })
      .onConflict(['kind', 'kid'])
      .merge();
  });
}

/** The page of a range, without what differs from one load to the next. */
async function overview(range: string): Promise<string> {
  const { text } = await dora.get(`/console/overview?range=${range}`);
  return text.replaceAll(/ nonce="[^"]*"|<time .*?<\/time>|name="csrf" value="[^"]*"/g, '');
}

const RANGES = ['24h', '7d', '30d', '90d'];
const readTotals = (text: string) =>
  [...text.matchAll(/<b data-n="\w+">([^<]+)<\/b>/g)].map(([, shown]) => shown);

describe('the overview', () => {
  const spread = Array.from({ length: 24 }, () => 12);
  it.each([
    [{ undeclared_automation: [218], human: [13] }, ['too few', 'too few', '218', 'too few']],
    [{ undeclared_automation: [211, 7] }, ['too few', 'too few', '218', 'too few']],
    [{ undeclared_automation: [7, 211] }, ['too few', 'too few', '211', 'too few']],
    [{ human: [49] }, ['too few', 'too few', 'too few', 'too few']],
    [{ human: [30, 20] }, ['50', 'too few', 'too few', 'too few']],
    [{ human: spread, unknown: [0, 60] }, ['240', 'too few', 'too few', '60']],
    [{ human: [70, 80] }, ['150', 'too few', 'too few', 'too few']],
  ])('%j: %j', async (counts, shown) => {
    await seed(counts);
    for (const range of ['24h']) expect(readTotals(await overview(range))).toEqual(shown);
  });

  it('two shops that differ in an hour of few people have the same page, in every range', async () => {
    // The second shop has nine people less in one hour, nine more in the hour that completes their group, and other visits that wait.
    await seed({ human: [3, 44, 12, 130, 90], undeclared_automation: [0, 0, 31, 10, 25] });
    const pages = await Promise.all(RANGES.map(overview));
    expect(pages[0]).toContain('>276<');
    await seed({ human: [3, 53, 3, 130, 90], undeclared_automation: [9, 0, 30, 11, 25] });
    expect(await Promise.all(RANGES.map(overview))).toEqual(pages);
  });

  it('the hour that is still counted is not shown', async () => {
    const hour = Math.floor(Date.now() / HOUR) * HOUR;
    await seed({ human: [60] });
    const pages = await Promise.all(RANGES.map(overview));
    await change(site, (tx) =>
      tx('tallies').insert({ kid: KID, kind: 'verdict', hour, name: 'human', n: 400 }),
    );
    expect(await Promise.all(RANGES.map(overview))).toEqual(pages);
  });

  it('consent counts in the same way', async () => {
    const row = (name: string, hoursAgo: number, n: number) => {
      const hour = Math.floor((Date.now() - 10 * MINUTE) / HOUR) * HOUR - hoursAgo * HOUR;
      return { kid: KID, kind: 'consent', hour, name, n };
    };
    await seed({});
    await change(site, (tx) =>
      tx('tallies').insert([row('granted', 9, 300), row('granted', 5, 4), row('denied', 2, 12)]),
    );
    const text = await overview('24h');
    expect(text).toContain('Agreed: 300, Refused: too few, Withdrew: too few, Opted out by GPC: too few');
    expect(text).toMatch(/<span>Agreed<\/span> <span class="number"><b>300<\/b> <span class="quiet">100 %/);
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
