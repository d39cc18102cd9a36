import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import { bumpTenant } from '../../src/db/meta-store.ts';
import { createMasterKey } from '../../src/keys/master-key.ts';
import type { Report } from '../../src/ops/doctor/doctor-service.ts';
import { rewrapAll } from '../../src/ops/rewrap-store.ts';
import { openStore } from '../../src/tenants/installation-files.ts';
import { execute } from '../support/database.ts';
import { expectCore, post, SEEN_WITHIN } from '../support/expect.ts';
import { createBundle } from '../support/seal.ts';
import { type Gpd, initGpd, startGpd } from '../support/server.ts';

/** One tenant whose rows cannot be read is not served, and all others are. */

const KIDS = ['good', 'settings', 'secret', 'headless'];
const TENANTS = KIDS.map((kid) => ({ kid, origins: [`https://${kid}.example`] }));

const damage = {
  settings: "UPDATE tenants SET settings = substr(settings, 2) WHERE kid = 'settings'",
  secret: "UPDATE tenant_secrets SET wrapped = 'x' || wrapped WHERE kid = 'secret' AND purpose = 'root'",
  headless: "DELETE FROM ledger_heads WHERE kid = 'headless'",
};

async function expectServed(gpd: Gpd, kids: readonly string[]): Promise<void> {
  const served = async (): Promise<string[]> => {
    const replies = await Promise.all(KIDS.map((kid) => fetch(`${gpd.url}/_fp/pubkey?kid=${kid}`)));
    return KIDS.filter((_, i) => replies[i]?.status === 200);
  };
  await expect.poll(served, SEEN_WITHIN).toEqual(kids);
}

const damagedIn = (gpd: Gpd): (string | undefined)[] =>
  [...gpd.logs().matchAll(/"event":"tenant-damaged","tenant":"(\w+)"/g)].map(([, kid]) => kid);

/** Starts a server, and opens its database beside it. */
async function start() {
  const gpd = await startGpd({ tenants: TENANTS });
  const store = await openStore(loadConfig({ environment: { GPD_DATA_DIR: gpd.dataDir }, flags: {} }));
  const change = (kid: string, text: string): Promise<unknown> =>
    store.database.transaction(async (tx) => {
      await tx.raw(text);
      await bumpTenant(tx, kid);
    });
  const stop = async (): Promise<void> => {
    await gpd.stop();
    await store.database.close();
  };
  return { gpd, store, change, stop };
}

it('from the start: the server is ready and ingests for the others; the log, the doctor and the list name it', async () => {
  const { dataDir, targets } = await initGpd(TENANTS);
  await execute(dataDir, ...Object.values(damage));
  const gpd = await startGpd({ dataDir });
  await expectServed(gpd, ['good']);
  expect(new Set(damagedIn(gpd))).toEqual(new Set(['headless', 'secret', 'settings']));
  const origin = 'https://good.example';
  expectCore(await post(gpd.url, createBundle(targets[0]!), { origin }), 'ok');
  expect((await fetch(`${gpd.url}/readyz`)).status).toBe(200);
  const env = { GPD_PORT: String(gpd.port) };
  const { checks } = JSON.parse((await gpd.cli(['doctor', '--json'], { env })).stdout) as Report;
  expect(checks.find(({ id }) => id === 'tenants.readable')).toMatchObject({
    status: 'fail',
    detail: expect.stringMatching(/: settings$/) as string,
  });
  const listed = await gpd.cli(['tenants', 'list']);
  expect(listed).toMatchObject({ code: 1 });
  expect(listed.stdout).toMatch(/good[\s\S]*headless[\s\S]*secret/);
  expect(listed.stderr).toMatch(/cannot be read: settings/);
  await gpd.stop();
});

it('from the change that damages it, until one that mends it; each said once', async () => {
  const { gpd, change, stop } = await start();
  await expectServed(gpd, KIDS);
  const kids = [...KIDS];
  for (const [kid, text] of Object.entries(damage)) {
    await change(kid, text);
    kids.splice(kids.indexOf(kid), 1);
    await expectServed(gpd, kids);
  }
  await change('settings', "UPDATE tenants SET settings = '{}' WHERE kid = 'settings'");
  await expectServed(gpd, ['good', 'settings']);
  expect(damagedIn(gpd)).toEqual(['settings', 'secret', 'headless']);
  await stop();
});

it('a master key that changed is no damage, also where a tenant is damaged beside it', async () => {
  const { gpd, store, change, stop } = await start();
  await change('settings', "DELETE FROM tenant_secrets WHERE kid = 'settings' AND purpose = 'root'");
  await expectServed(gpd, ['good', 'secret', 'headless']);
  const key = randomBytes(32);
  const act = { actorOf: () => undefined, at: Date.now() };
  await rewrapAll(
    store.database,
    store.masterKey,
    createMasterKey(key, randomBytes),
    store.serverSecret,
    act,
  );
  // The new key is not in its file yet, and then another one is: nobody may be taken for damaged.
  const file = join(gpd.dataDir, 'master.key');
  await expect.poll(() => gpd.logs()).toMatch(/WrongMasterKey/);
  writeFileSync(file, randomBytes(32).toString('base64'));
  await expectServed(gpd, ['good', 'secret', 'headless']);
  writeFileSync(file, key.toString('base64'));
  await change('secret', damage.secret);
  await expectServed(gpd, ['good', 'headless']);
  expect(new Set(damagedIn(gpd))).toEqual(new Set(['settings', 'secret']));
  await stop();
});
