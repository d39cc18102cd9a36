import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type Database, openDatabase } from '../../../src/db/engine.ts';
import { migrate } from '../../../src/db/migrate.ts';
import { createMasterKey } from '../../../src/keys/master-key.ts';
import { countWrapped, rewrapAll } from '../../../src/ops/rewrap-store.ts';
import { openArchiveSigner } from '../../../src/rights/dsar/signer-store.ts';
import { tempDir } from '../../support/command.ts';

const NOW = Date.UTC(2026, 10, 20);
const TEN_YEARS = 3650 * 86_400_000;
const masterKey = createMasterKey(randomBytes(32), randomBytes);

// RSA keys of 3072 bits are made.
vi.setConfig({ testTimeout: 120_000 });

let database: Database;
beforeEach(async () => {
  database = await openDatabase({ location: join(tempDir('signer'), 'gpd.db'), create: true });
  await migrate(database);
});
afterEach(() => database.close());

const open = (now: number, key = masterKey) =>
  openArchiveSigner({ database, masterKey: key, clock: () => now, host: 'gpd.example' });

it('is created once, whoever comes first, and again when it has expired', async () => {
  expect((await countWrapped(database)).secrets).toBe(1);
  const [one, other] = await Promise.all([open(NOW), open(NOW)]);
  expect(other.certificate).toBe(one.certificate);
  expect((await open(NOW + TEN_YEARS - 1000)).certificate).toBe(one.certificate);
  const next = await open(NOW + TEN_YEARS);
  expect(next.certificate).not.toBe(one.certificate);
  expect(next.notAfter.getTime()).toBe(NOW + 2 * TEN_YEARS);
  expect((await open(NOW + TEN_YEARS)).certificate).toBe(next.certificate);
});

it('is counted and rewrapped with everything else, and the old master key no longer opens it', async () => {
  const before = await open(NOW);
  const to = createMasterKey(randomBytes(32), randomBytes);
  const counted = await countWrapped(database);
  expect(counted.secrets).toBe(2);
  const act = { actorOf: () => undefined, at: NOW };
  expect(await rewrapAll(database, masterKey, to, randomBytes(32), act)).toEqual(counted);
  const after = await open(NOW, to);
  expect(after.certificate).toBe(before.certificate);
  expect(after.sign(Buffer.from('x')).equals(before.sign(Buffer.from('x')))).toBe(true);
  await expect(open(NOW)).rejects.toThrow(/master key/);
});
