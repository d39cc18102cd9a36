import { beforeAll, describe, expect, it } from 'vitest';
import { addCredential, findCredential, takeCredential } from '../../../src/attest/credential-store.ts';
import { createRecordAlone } from '../../../src/ingest/store.ts';
import type { MakeDatabase } from '../../db/contract/database.ts';
import { createEntry, DAY, NOW } from '../../support/make.ts';
import { ensureTenant } from '../../support/recorder.ts';
import { started } from '../../support/started.ts';

export function credentialContract(make: MakeDatabase): void {
  describe('passkeys', () => {
    const db = started(make);
    beforeAll(async () => {
      await ensureTenant(db.database, 'k');
    });

    const key = (durable: string) => ({ kid: 'k', durable });
    const initial = { publicKey: 'pk', counter: 4_000_000_000, deviceBound: true };
    const add = (durable: string, credential = initial) =>
      db.database.transaction((tx) => addCredential(tx, key(durable), credential, NOW));
    const take = (durable: string, from: number, to: number) =>
      db.database.transaction((tx) => takeCredential(tx, key(durable), { from, to }, NOW + 1));

    it('are there once, of one tenant, with their counter', async () => {
      expect(await add('a')).toBe(true);
      expect(await add('a', { ...initial, publicKey: 'other' })).toBe(false);
      expect(await findCredential(db.database, key('a'))).toEqual(initial);
      expect(await findCredential(db.database, { kid: 'other', durable: 'a' })).toBeNull();
      await add('bound', { ...initial, deviceBound: false });
      expect((await findCredential(db.database, key('bound')))?.deviceBound).toBe(false);
    });

    it('are used by one of two that read the same counter', async () => {
      await add('b', { ...initial, counter: 7 });
      const wins = await Promise.all([take('b', 7, 8), take('b', 7, 9)]);
      expect(wins.filter(Boolean)).toHaveLength(1);
      expect(await take('gone', 0, 1)).toBe(false);
      // On PostgreSQL either may come first.
      expect((await findCredential(db.database, key('b')))?.counter).toBe(wins[0] ? 8 : 9);
    });

    it('leave nothing of a decision whose passkey could not be written, not its challenge either', async () => {
      const record = createRecordAlone(db.database, () => 0);
      const since = await ensureTenant(db.database, 'k');
      const { claim, ...entry } = createEntry({ kid: 'k', id: 'alone', durable: 'c' });
      const sighting = {
        claim: { ...claim, since },
        device: { kid: 'k', durable: 'c', network: 'n', day: DAY },
        decide: () => entry,
      };
      const failing = record(sighting, () => Promise.reject(new Error('not written')));
      await expect(failing).rejects.toThrow('not written');
      for (const table of ['decisions', 'nonces', 'sightings'])
        expect(await db.database.read(table).where({ kid: 'k' })).toEqual([]);
      expect(await record(sighting, async () => {})).toEqual(entry);
      expect(await record(sighting, async () => {})).toBe('replay');
    });
  });
}
