import { expect, it } from 'vitest';
import type { Claimant } from '../../../src/auth/tokens.ts';
import { loadConfig } from '../../../src/config.ts';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { runRetention } from '../../../src/ops/housekeeping-service.ts';
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
  { days: 1, late: 0.5, open: 2, ruled: 45 },
])('retention of $days days: a late contest is told on day $ruled, and an erasure finds it', async (plan) => {
  const house = await open(plan.days);
  const byVisitor = await house.visit('a', 'mine');
  await house.visit('b', 'hers');
  const byLink = await house.link('b', 'hannah');
  await house.visit('c', 'nobodys');
  const byDpo = await house.visit('d', 'theirs');

  await house.atDay(plan.late);
  const contests = [
    await house.file(byVisitor, 'a'),
    await house.file(byLink, 'b'),
    await house.file(byDpo, 'd'),
  ];
  await house.atDay(plan.open);
  for (const who of [byVisitor, byLink])
    expect(await house.contestsOf(who)).toMatchObject([{ status: 'open', statement: STATEMENT }]);
  const led = { contests: 3, links: 1, sightings: 3, visitor_index: 3 };
  expect(await house.rows()).toEqual({ ...led, decisions: 3 });

  await house.atDay(plan.ruled);
  for (const { contestId } of contests) await house.resolve(contestId);
  await house.atDay(plan.ruled + HOUR / DAY);
  const ruling = { outcome: 'upheld', reason: 'Looked at all of it.' };
  for (const who of [byVisitor, byLink]) expect(await house.contestsOf(who)).toMatchObject([ruling]);
  expect(await house.rows()).toEqual({ ...led, decisions: 0 });

  const receipts = [byVisitor, byLink].map(async (who) =>
    house.api.eraseOwn(who, await house.api.identify(who), undefined),
  );
  // A dpo finds it by its requestId.
  const dpo = { kid: KID, role: 'dpo', ref: 'dora' } as const;
  for (const receipt of [...receipts, house.api.eraseFor(dpo, { requestId: 'req_d' })])
    expect((await receipt).scopes).toContainEqual({ scope: 'contests', action: 'erased', count: 1 });
  expect(await house.rows()).toMatchObject({ contests: 0, links: 0 });
  await house.database.close();
});

it('all of it goes with the contest', async () => {
  const house = await open(90);
  const who = await house.visit('a', 'mine');
  await house.link('a', 'anna');
  await house.atDay(88);
  const { contestId } = await house.file(who, 'a');
  await house.atDay(100);
  await house.resolve(contestId);
  await house.atDay(189);
  const led = { contests: 1, links: 1, sightings: 1, visitor_index: 1 };
  expect(await house.rows()).toEqual({ ...led, decisions: 0 });
  await house.atDay(191);
  expect(new Set(Object.values(await house.rows()))).toEqual(new Set([0]));
  expect(await house.contestsOf(who)).toBe('no-data');
  await house.database.close();
});
