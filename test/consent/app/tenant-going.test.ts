import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { openDatabase } from '../../../src/db/engine.ts';
import { TENANT_DATA_TABLES } from '../../../src/rights/person-map.ts';
import { KID, ORIGIN, OTHER, OTHER_ORIGIN } from '../../support/constants.ts';
import { post } from '../../support/expect.ts';
import type { Reply } from '../../support/http.ts';
import { desktopChrome } from '../../support/samples.ts';
import { createBundle } from '../../support/seal.ts';
import { type Gpd, type SealTarget, startGpd } from '../../support/server.ts';
import { type Api, apiOf, PURPOSE } from './support/api.ts';

/** `gpd tenants remove` beside a running server that is asked of both tenants all the while. */

let gpd: Gpd;
beforeAll(async () => {
  const tenants = [
    { kid: KID, origins: [ORIGIN] },
    { kid: OTHER, origins: [OTHER_ORIGIN] },
  ];
  // Keys of nobody are limited by client, and all of these callers are one.
  gpd = await startGpd({ tenants, settings: { GPD_RATE_CONSENT_CLIENT: 'off' } });
});
afterAll(() => gpd.stop());

async function apiOfTenant(kid: string): Promise<Api> {
  const words = ['apikeys', 'create', kid, '--scope', 'secret', '--name', 't'];
  const { key } = await gpd.json<{ key: string }>(words);
  return apiOf(gpd, { secret: key } as Api['keys']);
}

it('a removed tenant answers 401 to its own callers and leaves no row; nobody else notices', async () => {
  const statuses = new Map<string, Set<number>>();
  let people = 0;
  const one = { principalId: 'anna', purpose: PURPOSE };
  const visit = (target: SealTarget, origin: string): Promise<Reply> => {
    const signals = desktopChrome(String(people).padStart(32, 'a'));
    return post(gpd.url, createBundle(target, { signals }), { origin });
  };
  const callsOf = (
    api: Api,
    target: SealTarget,
    origin: string,
  ): Readonly<Record<string, () => Promise<Reply>>> => ({
    check: () => api.post('/v1/consent/can-process', one),
    batch: () => api.post('/v1/consent/can-process/batch', { checks: [{ id: '1', ...one }] }),
    write: () => api.post('/v1/consent/grant', { principalId: `p${people}`, purposes: [PURPOSE] }),
    visit: () => visit(target, origin),
  });

  let over = false;
  const repeat = async (kind: string, call: () => Promise<Reply>): Promise<void> => {
    while (!over) {
      people += 1;
      const { status } = await call();
      statuses.set(kind, (statuses.get(kind) ?? new Set()).add(status));
      // The command and the look for it need the processor too.
      await setTimeout(50);
    }
  };
  const [acme, other] = gpd.targets as [SealTarget, SealTarget];
  const callers = {
    [KID]: callsOf(await apiOfTenant(KID), acme, ORIGIN),
    [OTHER]: callsOf(await apiOfTenant(OTHER), other, OTHER_ORIGIN),
  };
  const asking = Object.entries(callers).flatMap(([kid, calls]) =>
    Object.entries(calls).map(([kind, call]) => repeat(`${kid} ${kind}`, call)),
  );
  /** Until each of the other tenant's callers has been told this. */
  const untilAnswered = (expected: Readonly<Record<string, number>>): Promise<void> =>
    vi.waitFor(
      () => {
        for (const [kind, status] of Object.entries(expected))
          expect(statuses.get(`${OTHER} ${kind}`), kind).toContain(status);
      },
      { timeout: 20_000, interval: 20 },
    );
  await untilAnswered({ check: 200, batch: 200, write: 201, visit: 200 });
  const removed = await gpd.json<{ removed: Record<string, number> }>(['tenants', 'remove', OTHER, '--yes']);
  await untilAnswered({ check: 401, batch: 401, write: 401, visit: 400 });
  over = true;
  await Promise.all(asking);

  expect(Object.fromEntries(statuses)).toEqual({
    [`${KID} check`]: new Set([200]),
    [`${KID} batch`]: new Set([200]),
    [`${KID} write`]: new Set([201]),
    [`${KID} visit`]: new Set([200]),
    [`${OTHER} check`]: new Set([200, 401]),
    [`${OTHER} batch`]: new Set([200, 401]),
    [`${OTHER} write`]: new Set([201, 401]),
    [`${OTHER} visit`]: new Set([200, 400]),
  });
  expect(removed.removed['decisions']).toBeGreaterThan(0);
  expect(gpd.logs()).not.toMatch(/"event":"(fault|sweep-failed)"/);
  const database = await openDatabase({ location: join(gpd.dataDir, 'gpd.db') });
  for (const table of TENANT_DATA_TABLES)
    expect(await database.read(table).where({ kid: OTHER }), table).toEqual([]);
  await database.close();
});
