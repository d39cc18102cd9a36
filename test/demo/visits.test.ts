import { expect, it, onTestFinished } from 'vitest';
import { PAST_CASES } from '../../src/demo/past-cases.ts';
import { pastVisits } from '../../src/demo/visits.ts';
import { DAY } from '../../src/lib/clock.ts';
import { openStore } from '../../src/tenants/installation-files.ts';
import { startDemoApp } from './support/demo-app.ts';

it('as many decisions as were asked for are stored over two weeks, each counted once', async () => {
  const { app, demo, stop } = await startDemoApp(300);
  onTestFinished(stop);
  const now = Date.now();
  expect((await fetch(`${app.url}/demo`)).status).toBe(200);
  const { database } = await openStore(demo.config);
  const decisions = (await database.read('decisions').pluck('decided_at')) as number[];
  const [counted] = (await database
    .read('tallies')
    .where({ kind: 'verdict' })
    .where('hour', '>=', now - 14 * DAY)
    .sum({ n: 'n' })) as { n: number }[];
  await database.close();
  const visits = [...pastVisits(now).map(({ at }) => at), ...PAST_CASES.map(({ days }) => now - days * DAY)];
  expect(decisions).toHaveLength(300 + visits.length);
  const days = decisions.filter((at) => at > now - 14 * DAY).map((at) => Math.floor(at / DAY));
  expect(new Set(days).size).toBeGreaterThanOrEqual(14);
  const recent = decisions.filter((at) => at >= now - 14 * DAY).length;
  expect(Math.abs(Number(counted?.n) - recent)).toBeLessThan(20);
});
