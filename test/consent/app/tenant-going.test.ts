import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { openDatabase } from '../../../src/db/engine.ts';
import { TENANT_DATA_TABLES } from '../../../src/rights/person-map.ts';
import { KID, ORIGIN, OTHER, OTHER_ORIGIN } from '../../support/constants.ts';
import { post } from '../../support/expect.ts';
import { postJson, type Reply } from '../../support/http.ts';
import { desktopChrome } from '../../support/samples.ts';
import { createBundle } from '../../support/seal.ts';
import { type Gpd, type SealTarget, startGpd } from '../../support/server.ts';
import { bearer, PURPOSE } from './support/api.ts';

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

async function createKey(kid: string): Promise<string> {
  const words = ['apikeys', 'create', kid, '--scope', 'secret', '--name', 't'];
  return (await gpd.json<{ key: string }>(words)).key;
}

it('a removed tenant answers 401 to its own callers and leaves no row; nobody else notices', async () => {
  const [acme, other] = gpd.targets as [SealTarget, SealTarget];
  const keys: Record<string, string> = { [KID]: await createKey(KID), [OTHER]: await createKey(OTHER) };
  const statuses = new Map<string, Set<number>>();
  let people = 0;
  const note = (kind: string, { status }: Reply): number => {
    statuses.set(kind, (statuses.get(kind) ?? new Set()).add(status));
    return status;
  };
  const check = async (kid: string): Promise<number> => {
    const body = { principalId: 'anna', purpose: PURPOSE };
    const path = '/v1/consent/can-process';
    return note(`${kid} check`, await postJson(gpd.url, path, body, bearer(keys[kid] ?? '')));
  };
  const batch = async (kid: string): Promise<number> => {
    const checks = [{ id: '1', principalId: 'anna', purpose: PURPOSE }];
    const path = '/v1/consent/can-process/batch';
    return note(`${kid} batch`, await postJson(gpd.url, path, { checks }, bearer(keys[kid] ?? '')));
  };
  const write = async (kid: string): Promise<number> => {
    people += 1;
    const body = { principalId: `p${people}`, purposes: [PURPOSE] };
    return note(`${kid} write`, await postJson(gpd.url, '/v1/consent/grant', body, bearer(keys[kid] ?? '')));
  };
  const visit = async (target: SealTarget, origin: string): Promise<number> => {
    people += 1;
    const signals = desktopChrome(String(people).padStart(32, 'a'));
    return note(`${target.kid} visit`, await post(gpd.url, createBundle(target, { signals }), { origin }));
  };

  let over = false;
  /** Until the server has said once that it knows the other tenant no more, and for a while beyond that. */
  const repeat = async (ask: () => Promise<number>): Promise<void> => {
    while (!over) await ask();
  };
  const asking = [KID, OTHER].flatMap((kid) => [
    ...[check, check, batch, write].map((ask) => repeat(() => ask(kid))),
    ...[acme, other]
      .filter((target) => target.kid === kid)
      .map((target) => repeat(() => visit(target, kid === KID ? ORIGIN : OTHER_ORIGIN))),
  ]);
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
