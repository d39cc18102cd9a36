import { expect, it } from 'vitest';
import type { Claimant } from '../../../src/auth/tokens.ts';
import { loadConfig } from '../../../src/config.ts';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { runRetention } from '../../../src/ops/retention.ts';
import { linkRequest } from '../../../src/rights/link-store.ts';
import { createServices, loadTenants } from '../../../src/services.ts';
import { openStore } from '../../../src/tenants/installation-files.ts';
import { principalRef } from '../../../src/tenants/tenant.ts';
import { createTenantStore } from '../../../src/tenants/tenant-store.ts';
import { KID } from '../../support/constants.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { initGpd } from '../../support/server.ts';

/** Contests that are filed shortly before retention takes the decision: everything that leads to them stays as long as they do. */

const STATEMENT = 'I drive this browser with a switch.';
/** Tables in which a device or a request of a late contest is named. */
const NAMED = ['decisions', 'contests', 'links', 'sightings', 'visitor_index'];

const claimant = (parts: Partial<Claimant>): Claimant => ({
  issuer: 'https://idp.example',
  sub: 'somebody',
  roles: new Set(['subject']),
  tenant: KID,
  visitor: null,
  principal: null,
  ...parts,
});

async function open(days: number) {
  const { dataDir } = await initGpd();
  const config = loadConfig({ environment: { GPD_DATA_DIR: dataDir }, flags: {} });
  const store = await openStore(config);
  const { database } = store;
  const [stored] = await createTenantStore(database).list();
  const settings = JSON.stringify({ ...stored?.settings, 'retention.days': days });
  await database.transaction((tx) => tx('tenants').where({ kid: KID }).update({ settings }));
  let now = NOW;
  const clock = (): number => now;
  const services = await createServices(config, { store, clock });
  await loadTenants(services);
  const tenant = services.tenants.find(KID);
  if (!tenant) throw new Error('the tenant is missing');
  const { api } = services.rights;

  /** A claimant reads either their contests or the code of the refusal. */
  const contestsOf = async (who: Claimant) => {
    const dsar = await api.gather(await api.identify(who));
    return dsar?.head.contests ?? 'no-data';
  };
  return {
    api,
    database,
    contestsOf,
    /** An hour of retention passes at this day. */
    async atDay(day: number) {
      now = NOW + day * DAY;
      const planned = await runRetention(database, now, true);
      const retained = await runRetention(database, now);
      expect(retained).toEqual(planned);
      expect(retained.failures).toEqual([]);
    },
    async visit(id: string, durable: string) {
      const entry = createEntry({ kid: KID, id, durable });
      await createRecorder(database).record(entry);
      return claimant({ visitor: entry.identified?.visitorId ?? '', sub: durable });
    },
    async link(id: string, principalId: string) {
      const principal = principalRef(tenant.principalKey, principalId);
      const link = { kid: KID, requestId: `req_${id}`, principal, linkedAt: NOW };
      await database.transaction((tx) => linkRequest(tx, link));
      return claimant({ principal: principalId, sub: principalId });
    },
    async file(who: Claimant, id: string) {
      const filing = { requestId: `req_${id}`, statement: STATEMENT };
      return api.fileContest(who, await api.identify(who), filing);
    },
    resolve: (contestId: string) =>
      api.resolveContest(claimant({ sub: 'rita' }), KID, 'reviewer', {
        contestId,
        outcome: 'upheld',
        reason: 'Looked at all of it.',
        version: null,
      }),
    async rows() {
      const counts: Record<string, number> = {};
      for (const table of NAMED) counts[table] = (await database.read(table).where({ kid: KID })).length;
      return counts;
    },
  };
}

/** `late`: shortly before the decision goes; the ruling comes after it would have gone. */
it.each([
  { days: 90, late: 80, open: 92, ruled: 100 },
  { days: 7, late: 5, open: 20, ruled: 30 },
  { days: 1, late: 0.5, open: 2, ruled: 45 },
])(
  'retention of $days days: a contest of day $late is told on day $ruled, and an erasure finds it',
  async (plan) => {
    const house = await open(plan.days);
    const byVisitor = await house.visit('a', 'mine');
    await house.visit('b', 'hers');
    const byLink = await house.link('b', 'hannah');
    await house.visit('c', 'nobodys');

    await house.atDay(plan.late);
    const contests = [await house.file(byVisitor, 'a'), await house.file(byLink, 'b')];

    await house.atDay(plan.open);
    for (const who of [byVisitor, byLink])
      expect(await house.contestsOf(who)).toMatchObject([{ status: 'open', statement: STATEMENT }]);
    expect(await house.rows()).toEqual({
      decisions: 2,
      contests: 2,
      links: 1,
      sightings: 2,
      visitor_index: 2,
    });

    await house.atDay(plan.ruled);
    for (const { contestId } of contests) await house.resolve(contestId);
    await house.atDay(plan.ruled + HOUR / DAY);
    for (const who of [byVisitor, byLink])
      expect(await house.contestsOf(who)).toMatchObject([
        { outcome: 'upheld', reason: 'Looked at all of it.' },
      ]);
    expect(await house.rows()).toMatchObject({ decisions: 0, contests: 2, links: 1 });

    for (const who of [byVisitor, byLink]) {
      const receipt = await house.api.eraseOwn(who, await house.api.identify(who), undefined);
      const erased = receipt.scopes.find(({ scope }) => scope === 'contests');
      expect(erased).toMatchObject({ action: 'erased', count: 1 });
    }
    expect(await house.rows()).toMatchObject({ contests: 0, links: 0 });
    await house.database.close();
  },
);

it('a dpo finds a contest by its requestId after retention deleted the decision', async () => {
  const house = await open(90);
  const who = await house.visit('a', 'mine');
  await house.atDay(80);
  const { contestId } = await house.file(who, 'a');
  await house.atDay(100);
  await house.resolve(contestId);
  await house.atDay(101);
  const receipt = await house.api.eraseFor({ kid: KID, role: 'dpo', ref: 'dora' }, { requestId: 'req_a' });
  expect(receipt.scopes.find(({ scope }) => scope === 'contests')).toMatchObject({ count: 1 });
  expect(await house.rows()).toMatchObject({ contests: 0 });
  await house.database.close();
});

it.each([{ days: 90 }, { days: 7 }])(
  'retention of $days days: all of it goes with the contest',
  async ({ days }) => {
    const house = await open(days);
    const who = await house.visit('a', 'mine');
    await house.link('a', 'anna');
    await house.atDay(days - 2);
    const { contestId } = await house.file(who, 'a');
    const ruled = Math.max(days + 10, 40);
    await house.atDay(ruled);
    await house.resolve(contestId);
    await house.atDay(ruled + days - 1);
    expect(await house.rows()).toEqual({
      decisions: 0,
      contests: 1,
      links: 1,
      sightings: 1,
      visitor_index: 1,
    });
    await house.atDay(ruled + days + 1);
    expect(new Set(Object.values(await house.rows()))).toEqual(new Set([0]));
    expect(await house.contestsOf(who)).toBe('no-data');
    await house.database.close();
  },
);
