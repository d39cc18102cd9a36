import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import { createDirectory, type SealKeyChanges } from '../../src/tenants/directory.ts';
import { openStore } from '../../src/tenants/installation-files.ts';
import { readSnapshot } from '../../src/tenants/snapshot-store.ts';
import { KID } from '../support/constants.ts';
import { initGpd } from '../support/server.ts';

/**
 * The directory sends changed seal keys to the thread that decrypts,
 * and refuses bundles of generations that are no longer live.
 */

const NOW = 1_790_000_000_000;

it('tells the thread of keys that changed and tenants that went, and takes no generation past its grace', async () => {
  const { dataDir } = await initGpd();
  const store = await openStore(loadConfig({ environment: { GPD_DATA_DIR: dataDir }, flags: {} }));
  try {
    const page = await readSnapshot(store.database, -1);
    const changed = page.changed.map((snapshot) => ({
      ...snapshot,
      keys: snapshot.keys.map((key) => ({ ...key, state: 'retiring' as const, retiresAt: NOW + 1000 })),
    }));
    let now = NOW;
    const openedGenerations: string[] = [];
    const changeLists: SealKeyChanges[] = [];
    const directory = createDirectory({
      masterKey: store.masterKey,
      clock: () => now,
      random: randomBytes,
      onOpened: ({ kid }, generation) => openedGenerations.push(`${kid} ${generation}`),
    });
    directory.watchSealKeys((changes) => changeLists.push(changes));
    directory.apply({ ...page, changed });
    const [key] = changeLists[0]?.get(KID)?.generations ?? [];
    expect(key?.generation).toBe(1);
    // A view of a larger buffer would send the rest of that buffer to the thread too.
    expect([key?.privateKey.length, key?.privateKey.buffer.byteLength]).toEqual([32, 32]);

    expect(directory.noteOpened(KID, 1)).toBe(true);
    expect(directory.noteOpened(KID, 2)).toBe(false);
    expect(directory.noteOpened('nobody', 1)).toBe(false);
    now = NOW + 1000;
    expect(directory.noteOpened(KID, 1)).toBe(false);
    expect(openedGenerations).toEqual([`${KID} 1`]);

    directory.apply({ ...page, changed: [], kids: new Set() });
    expect(changeLists[1]).toEqual(new Map([[KID, null]]));
  } finally {
    await store.database.close();
  }
});
