import { expect, it, onTestFinished, vi } from 'vitest';
import type { IngestReason } from '../../src/schema/responses.ts';
import { type Api, apiOf, type Keys, PURPOSE } from '../consent/app/support/api.ts';
import { addApiKey } from '../support/api-key.ts';
import { execute } from '../support/database.ts';
import { expectCore, expectError, post } from '../support/expect.ts';
import { ask } from '../support/http.ts';
import { createBundle } from '../support/seal.ts';
import { startGpd } from '../support/server.ts';

/** A server whose clock jumps by hours and years: nothing is taken twice, lost, or refused for longer than it must. */

const HOUR = 3_600_000;
const YEAR = 365 * 24 * HOUR;

interface Place {
  readonly api: Api;
  /** Sets the clock so many milliseconds off the true time. */
  set(ms: number): void;
  count(table: string): Promise<number>;
  /** A bundle of a browser whose clock is right or off by as much. */
  visit(ms: number, reason: IngestReason): Promise<object>;
  expectRefused(ms: number): Promise<void>;
}

async function startPlace(): Promise<Place> {
  let offset = 0;
  const app = { clock: () => Date.now() + offset, intervals: { housekeeping: 50 } };
  const gpd = await startGpd({ app });
  onTestFinished(() => void gpd.stop());
  const api = apiOf(gpd, { secret: await addApiKey(gpd) } as Keys);
  const bundleOf = (ms: number) => createBundle(api.gpd.targets[0]!, { clientTs: Date.now() + ms });
  return {
    api,
    set(ms) {
      offset = ms;
    },
    count: async (table) =>
      Number((await execute(api.gpd.dataDir, `SELECT count(*) AS n FROM ${table}`))[0]?.['n']),
    async visit(ms, reason) {
      const bundle = bundleOf(ms);
      expectCore(await post(api.gpd.url, bundle), reason);
      return bundle;
    },
    async expectRefused(ms) {
      expect((await post(api.gpd.url, bundleOf(ms))).status).toBe(503);
      const ready = await ask(api.gpd.url, '/readyz');
      expect({ status: ready.status, text: ready.text }).toEqual({
        status: 503,
        text: expect.stringContaining('the clock is behind the newest committed time') as string,
      });
    },
  };
}

/** A round of housekeeping has committed a time since then. */
const expectCommitted = ({ api }: Place, since: number): Promise<void> =>
  vi.waitFor(async () => {
    const [row] = await execute(api.gpd.dataDir, "SELECT value FROM meta WHERE name = 'newest-time'");
    expect(Number(row?.['value'] ?? 0)).toBeGreaterThan(since);
  });

/** The ledger takes and answers what is written now, whatever the time was before. */
async function expectLedgerSound({ api }: Place, principalId: string): Promise<void> {
  await api.write('grant', { principalId, purposes: [PURPOSE] });
  expect(await api.check(principalId)).toMatchObject({ allowed: true, reason: 'granted' });
  await api.write('withdraw', { principalId, purposes: [PURPOSE] });
  expect(await api.check(principalId)).toMatchObject({ allowed: false, reason: 'withdrawn' });
  expect(await api.gpd.json(['consent', 'verify', 'acme'])).toMatchObject({ ok: true });
}

it('an hour back: no bundle until it is set right, and consent goes on', async () => {
  const place = await startPlace();
  const { api } = place;
  const bundle = await place.visit(0, 'ok');
  await expectCommitted(place, Date.now() - HOUR / 2);
  const session = await api.session('somebody');
  place.set(-HOUR);
  await place.expectRefused(-HOUR);
  await expectLedgerSound(place, 'behind');
  // An hour is more than a session may live, in whichever direction.
  const state = await api.post('/v1/consent/state', { principalId: 'somebody' }, session);
  expectError(state, 'unauthenticated');
  place.set(0);
  expectCore(await post(api.gpd.url, bundle), 'replay');
  await place.visit(-HOUR, 'stale');
  await place.visit(0, 'ok');
  await expectLedgerSound(place, 'right');
  expect((await ask(api.gpd.url, '/readyz')).status).toBe(200);
});

it('two hours ahead for a whole sweep: nothing is taken twice', async () => {
  const place = await startPlace();
  const bundle = await place.visit(0, 'ok');
  const nonces = await place.count('nonces');
  place.set(2 * HOUR);
  await place.visit(0, 'stale');
  await vi.waitFor(async () => expect(await place.count('nonces')).toBeLessThan(nonces));
  await place.visit(2 * HOUR, 'ok');
  place.set(0);
  // Nobody can say any more what of now was taken: refused until the time has caught up.
  expect((await post(place.api.gpd.url, bundle)).status).toBe(503);
  await place.expectRefused(0);
  await expectLedgerSound(place, 'back');
  place.set(2 * HOUR);
  await place.visit(2 * HOUR, 'ok');
});

it('three years ahead for a whole sweep: nothing goes, and nobody is refused afterwards', async () => {
  const place = await startPlace();
  const bundle = await place.visit(0, 'ok');
  await expectCommitted(place, Date.now() - HOUR / 2);
  // Goes with the sweep: a session is nothing that anybody would want back.
  await place.api.session('somebody');
  place.set(3 * YEAR);
  await vi.waitFor(async () => expect(await place.count('principal_sessions')).toBe(0));
  place.set(0);
  expect(await place.count('decisions')).toBe(1);
  expectCore(await post(place.api.gpd.url, bundle), 'replay');
  await place.visit(0, 'ok');
});
