import { describe, expect, it } from 'vitest';
import { newDirectory } from '../../../src/agents/service.ts';
import {
  type AgentDirectory,
  createNonceClaimer,
  listDirectories,
  purgeAgentNonces,
  saveFetched,
} from '../../../src/agents/store.ts';
import type { SignatureClaim } from '../../../src/agents/verify.ts';
import { readRevision } from '../../../src/db/meta-store.ts';
import { readSnapshot } from '../../../src/tenants/snapshot-store.ts';
import type { MakeDatabase } from '../../db/contract/database.ts';
import { addAgent } from '../../support/agents.ts';
import { NOW } from '../../support/make.ts';
import { twoNodes } from '../../support/started.ts';

function createDirectory(url: string, over: Partial<AgentDirectory> = {}): AgentDirectory {
  return { ...newDirectory(url, 'listed'), ...over };
}

let bundles = 0;

/** Each claim comes from another bundle. */
function claimOf(nonce: string, expiresAt: number): SignatureClaim {
  bundles += 1;
  return { nonce, bundle: `acme|${bundles}`, expiresAt };
}

export function agentContract(make: MakeDatabase): void {
  describe('agent store', () => {
    const { db, other } = twoNodes(make);

    it('a directory whose stored keys cannot be read has none, and hides no other', async () => {
      const url = 'https://damaged.example/';
      await addAgent(db.database, createDirectory(url));
      for (const keys of ['[{', 'null', '{}']) {
        await db.database.transaction((tx) => tx('agent_directories').where({ url }).update({ keys }));
        const found = (await listDirectories(other)).filter((directory) => directory.url === url);
        expect(found).toEqual([createDirectory(url, { failure: 'its stored keys cannot be read' })]);
      }
      await db.database.transaction((tx) => tx('agent_directories').where({ url }).delete());
    });

    it('stores what a fetch brought unless a later one, a removal or a pin came first', async () => {
      const url = 'https://fetched.example/';
      const before = createDirectory(url);
      const stored = async (): Promise<AgentDirectory | undefined> =>
        (await listDirectories(other)).find((directory) => directory.url === url);
      const fetched = (triedAt: number): AgentDirectory => ({ ...before, fetchedAt: triedAt, triedAt });
      await saveFetched(db.database, fetched(NOW), before, NOW);
      expect(await stored()).toBeUndefined();
      await addAgent(db.database, before);
      await saveFetched(db.database, fetched(NOW + 2), before, NOW + 9);
      await saveFetched(other, fetched(NOW + 1), before, NOW + 9);
      expect(await stored()).toEqual(fetched(NOW + 2));
      await addAgent(other, { ...before, source: 'pinned' });
      await saveFetched(db.database, fetched(NOW + 3), before, NOW + 9);
      expect(await stored()).toEqual({ ...before, source: 'pinned' });
      await db.database.transaction((tx) => tx('agent_directories').where({ url }).delete());
    });

    it('keeps what the operator pinned, or said of its card, while a card was fetched', async () => {
      const url = 'https://card.example/';
      const card = { url: 'https://card.example/card', says: null, failure: null };
      const key = { thumbprint: 'old', x: 'A'.repeat(43) };
      const before = createDirectory(url, { source: 'pinned', keys: [key], card });
      const fetched = { ...before, card: { ...card, failure: 'no' }, triedAt: NOW };
      const stored = async () => (await listDirectories(other)).find((directory) => directory.url === url);
      const rotated = { ...before, keys: [{ ...key, thumbprint: 'new' }] };
      const changes = [rotated, { ...rotated, card: null }, { ...before, card: null }];
      for (const changed of changes) {
        await addAgent(other, changed);
        await saveFetched(db.database, fetched, before, NOW);
        expect(await stored()).toEqual(changed);
      }
      await addAgent(other, before);
      await saveFetched(db.database, fetched, before, NOW);
      expect(await stored()).toEqual(fetched);
      await db.database.transaction((tx) => tx('agent_directories').where({ url }).delete());
    });

    it('counts changes by a revision of its own', async () => {
      const [agents, tenants] = [
        await readRevision(other, 'agents'),
        (await readSnapshot(other, -1)).revision,
      ];
      await addAgent(db.database, createDirectory('https://c.example/'));
      expect(await readRevision(other, 'agents')).toBe(agents + 1);
      expect((await readSnapshot(other, -1)).revision).toBe(tenants);
    });

    it('gives a nonce to the first who claims it, on all nodes together', async () => {
      const claimers = [createNonceClaimer(db.database), createNonceClaimer(other)];
      const answers = await Promise.all(
        Array.from({ length: 60 }, (_, i) => claimers[i % 2]!(claimOf(`nonce-${i % 3}`, NOW))),
      );
      expect(answers.filter(Boolean)).toHaveLength(3);
      expect(await claimers[0]!(claimOf('nonce-0', NOW))).toBe(false);
      expect(await claimers[1]!(claimOf('nonce-3', NOW))).toBe(true);
    });

    it('gives a nonce to its bundle again, and to no other, in one batch too', async () => {
      const claim = createNonceClaimer(db.database);
      const [mine, theirs] = ['acme|a', 'acme|b'].map((bundle) => ({
        nonce: 'again',
        bundle,
        expiresAt: NOW,
      }));
      expect(await Promise.all([mine!, theirs!, mine!].map(claim))).toEqual([true, false, true]);
      expect(await Promise.all([theirs!, mine!, mine!].map(createNonceClaimer(other)))).toEqual([
        false,
        true,
        true,
      ]);
    });

    it('forgets a nonce once it is past its time', async () => {
      const claim = createNonceClaimer(db.database);
      await Promise.all([claim(claimOf('past', 999)), claim(claimOf('due', 1000))]);
      expect(await purgeAgentNonces(other, 1000)).toBe(1);
      const again = [claim(claimOf('past', 2000)), claim(claimOf('due', 2000))];
      expect(await Promise.all(again)).toEqual([true, false]);
    });
  });
}
