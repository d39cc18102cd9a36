import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { makeBackup } from '../../src/app/backup.ts';
import { type ErasureLine, erasuresSince } from '../../src/app/erasure-log.ts';
import { restoreBackup } from '../../src/app/restore.ts';
import { finishRestore, pendingPath } from '../../src/app/restore-pending.ts';
import { openStore, type Store } from '../../src/app/store.ts';
import { type Config, loadConfig } from '../../src/config.ts';
import { hmacSha256 } from '../../src/lib/hash.ts';
import { tempDir } from '../support/command.ts';
import { dumpDatabase, execute } from '../support/database.ts';
import { initGpd, KID } from '../support/server.ts';

/** Erasures that came after a backup, on the database that it is restored to. */

const HOUR = 3_600_000;
const NOW = Date.parse('2026-11-20T12:00:00Z');
const silent = { onProgress: () => {} };

let dataDir: string;
let config: Config;
let log: string;
beforeEach(async () => {
  ({ dataDir } = await initGpd());
  config = loadConfig({ environment: { GPD_DATA_DIR: dataDir } });
  log = join(dataDir, 'erasures.log');
  for (const durable of ['ann', 'ben', 'cleo']) {
    await execute(dataDir, `INSERT INTO sightings VALUES ('${KID}', '${durable}', 1, 1, 1, 1)`);
  }
});

async function withStore<T>(work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(config);
  try {
    return await work(store);
  } finally {
    await store.database.close();
  }
}

const refOf = (store: Store, durable: string): string =>
  hmacSha256(store.serverSecret, durable).toString('base64url');
const durables = async (): Promise<unknown[]> =>
  (await execute(dataDir, 'SELECT durable FROM sightings ORDER BY durable')).map((row) => row['durable']);

/** Finds whose reference a line has by computing everybody's, as an erasure by reference has to. */
async function reapply(store: Store, lines: readonly ErasureLine[]): Promise<void> {
  const refs = new Set(lines.map((line) => line.target.ref));
  const rows = await store.database.read('sightings').select<{ durable: string }[]>('durable');
  const gone = rows.map((row) => row.durable).filter((durable) => refs.has(refOf(store, durable)));
  await store.database.transaction((tx) => tx('sightings').whereIn('durable', gone).delete());
}

async function erase(durable: string, at: number): Promise<void> {
  await withStore(async (store) => {
    const target = { kind: 'durable', ref: refOf(store, durable) };
    appendFileSync(log, `${JSON.stringify({ v: 1, receiptId: `r-${durable}`, tenant: KID, at, target })}\n`);
  });
  await execute(dataDir, `DELETE FROM sightings WHERE durable = '${durable}'`);
}

function backup(at = NOW): Promise<string> {
  const file = join(tempDir('backups'), 'b');
  return withStore(async (store) => {
    await makeBackup(store, config, file, { version: '0.1.0', now: at, ...silent });
    return file;
  });
}

const restore = (file: string, into = config) =>
  restoreBackup(into, file, { dryRun: false, now: NOW, ...silent });

describe('an erasure after the backup', () => {
  it('is repeated on the restored database before anybody listens; one before it is not', async () => {
    await erase('ann', NOW - 2 * HOUR);
    const file = await backup();
    await erase('ben', NOW + HOUR);
    // Erased, and back again before the backup: what came after that erasure stays.
    expect(await durables()).toEqual(['cleo']);
    const restored = await restore(file);
    expect(restored.erasuresToRepeat).toBe(1);
    expect(await durables()).toEqual(['ben', 'cleo']);
    const told: ErasureLine[] = [];
    const count = await withStore((store) =>
      finishRestore(config, store, async (opened, lines) => {
        told.push(...lines);
        await reapply(opened, lines);
      }),
    );
    expect(count).toBe(1);
    expect(told.map((line) => line.receiptId)).toEqual(['r-ben']);
    expect(await durables()).toEqual(['cleo']);
    expect(existsSync(pendingPath(config))).toBe(false);
    expect(readFileSync(log, 'utf8').trim().split('\n')).toHaveLength(2);
  });

  it('keeps the server from listening where nobody can repeat it, and until it is repeated', async () => {
    const file = await backup();
    await erase('ben', NOW + HOUR);
    await restore(file);
    await withStore(async (store) => {
      await expect(finishRestore(config, store, undefined)).rejects.toThrow(/1 erasures came after/);
      const failing = async (): Promise<void> => {
        throw new Error('the disk is full');
      };
      await expect(finishRestore(config, store, failing)).rejects.toThrow('the disk is full');
      expect(existsSync(pendingPath(config))).toBe(true);
      expect(await finishRestore(config, store, reapply)).toBe(1);
      expect(await finishRestore(config, store, undefined)).toBe(0);
    });
    expect(await durables()).toEqual(['ann', 'cleo']);
  });

  it('is not forgotten by a second restore, nor by a backup in between', async () => {
    const file = await backup();
    await erase('ben', NOW + HOUR);
    await restore(file);
    await expect(backup(NOW + 2 * HOUR)).rejects.toThrow(/restore is not finished/);
    expect((await restore(file)).erasuresToRepeat).toBe(1);
    await withStore((store) => finishRestore(config, store, reapply));
    expect((await restore(file)).erasuresToRepeat).toBe(1);
  });

  it('comes along with a later backup into another directory, beside what that one knows', async () => {
    const early = await backup();
    await erase('ben', NOW + HOUR);
    const late = await backup(NOW + 3 * HOUR);
    const other = { ...config, data_dir: join(tempDir('other'), 'gpd-data') };
    const keyFile = join(dataDir, 'master.key');
    await restoreBackup(other, late, { keyFile, dryRun: false, now: NOW, ...silent });
    expect(readFileSync(join(other.data_dir, 'erasures.log'), 'utf8')).toBe(readFileSync(log, 'utf8'));
    const restored = await restore(early, other);
    expect(restored.erasuresToRepeat).toBe(1);
  });

  it('a line that a crash cut off was never answered; one damaged inside stops the restore', async () => {
    const file = await backup();
    await erase('ben', NOW + HOUR);
    appendFileSync(log, '{"v":1,"receiptId":"r-');
    expect((await restore(file)).erasuresToRepeat).toBe(1);
    writeFileSync(log, `garbage\n${readFileSync(log, 'utf8')}`);
    const before = await dumpDatabase(dataDir);
    await expect(restore(file)).rejects.toThrow(/erasures\.log: line 1 is damaged/);
    expect(await dumpDatabase(dataDir)).toEqual(before);
  });

  it('a damaged marker keeps the server from listening', async () => {
    await restore(await backup());
    writeFileSync(pendingPath(config), '{"v":1,');
    await withStore(async (store) => {
      await expect(finishRestore(config, store, reapply)).rejects.toThrow(/gpd restore/);
    });
  });
});

describe('which erasures a copy may not have done', () => {
  const line = (receiptId: string, at: number | string): string =>
    JSON.stringify({ v: 1, receiptId, tenant: KID, at, target: { kind: 'durable', ref: 'x' } });
  const names = (lines: readonly string[], carried: readonly string[]): string[] =>
    erasuresSince(lines, carried, NOW, 'log').map((found) => found.receiptId);

  it.each([
    ['carried, and long before', [line('a', NOW - 2 * HOUR)], true, []],
    ['carried, and shortly before: it may have been under way', [line('a', NOW - 60_000)], true, ['a']],
    ['carried, by its time as text', [line('a', '2026-11-20T11:59:00.000Z')], true, ['a']],
    ['not carried, whatever its time', [line('a', NOW - 99 * HOUR)], false, ['a']],
    ['after the copy', [line('a', NOW + 1)], false, ['a']],
  ])('%s', (_name, lines, isCarried, expected) => {
    expect(names(lines, isCarried ? lines : [])).toEqual(expected);
  });
});
