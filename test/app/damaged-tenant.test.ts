import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { startPolling } from '../../src/app/poll.ts';
import { loadConfig } from '../../src/config.ts';
import type { Database } from '../../src/db/engine.ts';
import { bumpTenant } from '../../src/db/meta-store.ts';
import { createMasterKey, WrongMasterKey } from '../../src/keys/master-key.ts';
import type { Report } from '../../src/ops/doctor/doctor.ts';
import { rewrapAll } from '../../src/ops/rewrap-store.ts';
import { createDirectory } from '../../src/tenants/directory.ts';
import { openStore } from '../../src/tenants/installation-files.ts';
import { runGpd } from '../support/command.ts';
import { execute } from '../support/database.ts';
import { expectCore, post } from '../support/expect.ts';
import { createBundle } from '../support/seal.ts';
import { initGpd, startGpd } from '../support/server.ts';

/** One tenant whose rows cannot be read is not served, and all others are. */

const KIDS = ['good', 'settings', 'secret', 'headless'];
const TENANTS = KIDS.map((kid) => ({ kid, origins: [`https://${kid}.example`] }));

const damage = {
  settings: "UPDATE tenants SET settings = substr(settings, 2) WHERE kid = 'settings'",
  secret: "UPDATE tenant_secrets SET wrapped = 'x' || wrapped WHERE kid = 'secret' AND purpose = 'root'",
  headless: "DELETE FROM ledger_heads WHERE kid = 'headless'",
};

async function open(dataDir: string) {
  const config = loadConfig({ environment: { GPD_DATA_DIR: dataDir }, flags: {} });
  const { database, masterKey, serverSecret } = await openStore(config);
  const directory = createDirectory({ masterKey, clock: Date.now, random: randomBytes });
  const damaged: string[] = [];
  const faults: unknown[] = [];
  let file: Buffer | null = null;
  const polling = await startPolling(database, directory, {
    rereadMasterKey() {
      if (!file) throw new Error('the file of the master key is away');
      return file;
    },
    onFault: (error) => faults.push(error),
    onDamaged: ({ kid }) => damaged.push(kid),
  });
  return {
    database,
    masterKey,
    serverSecret,
    polling,
    damaged,
    served: () => KIDS.filter((kid) => directory.find(kid) !== undefined),
    putKey: (key: Buffer) => {
      file = key;
    },
    async close() {
      await polling.stop();
      await database.close();
    },
  };
}

const change = (database: Database, kid: string, text: string): Promise<unknown> =>
  database.transaction(async (tx) => {
    await tx.raw(text);
    await bumpTenant(tx, kid);
  });

it('from the start', async () => {
  const { dataDir } = await initGpd(TENANTS);
  await execute(dataDir, ...Object.values(damage));
  const node = await open(dataDir);
  expect(node.served()).toEqual(['good']);
  expect([...node.damaged].sort()).toEqual(['headless', 'secret', 'settings']);
  await node.close();
});

it('from the change that damages it, until one that mends it; each said once', async () => {
  const { dataDir } = await initGpd(TENANTS);
  const node = await open(dataDir);
  expect(node.served()).toEqual(KIDS);
  for (const [kid, text] of Object.entries(damage)) {
    await change(node.database, kid, text);
    await node.polling.refresh();
  }
  await node.polling.refresh();
  expect(node.served()).toEqual(['good']);
  expect(node.damaged).toEqual(['settings', 'secret', 'headless']);
  await change(node.database, 'settings', "UPDATE tenants SET settings = '{}' WHERE kid = 'settings'");
  await node.polling.refresh();
  expect(node.served()).toEqual(['good', 'settings']);
  await node.close();
});

it('a master key that changed is no damage, also where a tenant is damaged beside it', async () => {
  const { dataDir } = await initGpd(TENANTS);
  const node = await open(dataDir);
  const noRoot = "DELETE FROM tenant_secrets WHERE kid = 'settings' AND purpose = 'root'";
  await change(node.database, 'settings', noRoot);
  await node.polling.refresh();
  const key = randomBytes(32);
  await rewrapAll(node.database, node.masterKey, createMasterKey(key, randomBytes), node.serverSecret, {
    actorOf: () => undefined,
    at: Date.now(),
  });
  // The new key is not in its file yet: nobody may be taken for damaged.
  await expect(node.polling.refresh()).rejects.toThrow();
  node.putKey(randomBytes(32));
  await expect(node.polling.refresh()).rejects.toMatchObject({
    cause: expect.any(WrongMasterKey) as unknown,
  });
  expect(node.served()).toEqual(['good', 'secret', 'headless']);
  node.putKey(key);
  await node.polling.refresh();
  expect(node.served()).toEqual(['good', 'secret', 'headless']);
  await change(node.database, 'secret', damage.secret);
  await node.polling.refresh();
  expect(node.served()).toEqual(['good', 'headless']);
  await node.close();
});

it('a server beside it starts, is ready and ingests; the log, the doctor and the list name it', async () => {
  const { dataDir, targets } = await initGpd(TENANTS);
  await execute(dataDir, damage.settings);
  const gpd = await startGpd({ dataDir });
  const [good] = targets;
  if (!good) throw new Error('no tenant');
  const origin = 'https://good.example';
  expectCore(await post(gpd.url, createBundle(good), { origin }), 'ok');
  expect((await fetch(`${gpd.url}/readyz`)).status).toBe(200);
  expect(gpd.logs()).toMatch(/"event":"tenant-damaged","tenant":"settings"/);
  const env = { GPD_DATA_DIR: dataDir, GPD_PORT: String(gpd.port) };
  const report = JSON.parse((await runGpd(['doctor', '--json'], { env })).stdout) as Report;
  expect(report.checks.find(({ id }) => id === 'tenants.readable')).toMatchObject({
    status: 'fail',
    detail: expect.stringMatching(/: settings$/) as string,
  });
  const listed = await runGpd(['tenants', 'list'], { env });
  expect(listed).toMatchObject({ code: 1 });
  expect(listed.stdout).toMatch(/good[\s\S]*headless[\s\S]*secret/);
  expect(listed.stderr).toMatch(/cannot be read: settings/);
  await gpd.stop();
});
