import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { planGenerate, planRotate } from '../../../src/keys/generation.ts';
import { createSealKeyStore } from '../../../src/tenants/seal-keys.ts';
import { readSnapshot } from '../../../src/tenants/snapshot-store.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from '../../db/contract/database.ts';
import { operatorAt } from '../../support/act.ts';
import { createGenerationRow, NOW } from '../../support/make.ts';

export function sealKeyContract(make: MakeDatabase): void {
  describe('SealKeyStore', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    it('keeps every field of every state, and lists by generation', async () => {
      const kid = await addTenant(db.database, 'every-state');
      const store = createSealKeyStore(db.database);
      const staged = { state: 'staged', wrappedPrivate: 'w10', publishedAt: null } as const;
      const destroyed = {
        state: 'destroyed',
        wrappedPrivate: null,
        destroyedAt: 8_640_000_000_000_000,
      } as const;
      const keys = [
        createGenerationRow({ kid, generation: 10, ...staged }),
        createGenerationRow({ kid, generation: 2, state: 'retiring', retiresAt: NOW + 604_800_000 }),
        createGenerationRow({ kid, generation: 1, ...destroyed }),
        createGenerationRow({ kid, generation: 3 }),
      ];
      await store.change(kid, () => ({ ok: true, changed: keys, result: keys[0]! }), operatorAt(NOW));
      expect(await store.list(kid)).toEqual([keys[2], keys[1], keys[3], keys[0]]);
      expect(await createSealKeyStore(other).list(kid)).toEqual([keys[2], keys[1], keys[3], keys[0]]);
    });

    it('overwrites a destroyed private key', async () => {
      const kid = await addTenant(db.database, 'overwrite');
      const key = createGenerationRow({ kid, state: 'destroyed', wrappedPrivate: null, destroyedAt: NOW });
      const plan = () => ({ ok: true, changed: [key], result: key }) as const;
      await createSealKeyStore(db.database).change(kid, plan, operatorAt(NOW));
      const rows = await other.read('seal_keys').where({ kid });
      expect(rows).toHaveLength(1);
      expect(JSON.stringify(rows)).not.toContain('wrapped-1');
    });

    it('writes nothing when the plan throws or one of its rows cannot be written', async () => {
      const kid = await addTenant(db.database, 'throws');
      const store = createSealKeyStore(db.database);
      const before = await readSnapshot(other, -1);
      const throws = () => {
        throw new Error('no plan');
      };
      await expect(store.change(kid, throws, operatorAt(NOW))).rejects.toThrow('no plan');
      const good = createGenerationRow({ kid, generation: 2, state: 'staged' });
      const bad = createGenerationRow({ kid, generation: 3, publicKey: null as unknown as string });
      const plan = () => ({ ok: true, changed: [good, bad], result: good }) as const;
      await expect(store.change(kid, plan, operatorAt(NOW))).rejects.toThrow();
      expect(await store.list(kid)).toEqual([createGenerationRow({ kid })]);
      expect((await readSnapshot(other, -1)).revision).toBe(before.revision);
    });

    it('lets two nodes rotate at once without two published keys or one number twice', async () => {
      const kid = await addTenant(db.database, 'race');
      const stores = [createSealKeyStore(db.database), createSealKeyStore(other)];
      const createKey = (generation: number, state: 'staged' | 'published') =>
        createGenerationRow({ kid, generation, state, wrappedPrivate: `w${generation}` });
      const plans = await Promise.all(
        Array.from({ length: 8 }, (_, i) =>
          stores[i % 2]!.change(
            kid,
            (keys) => planRotate(keys, createKey, { now: NOW + i, graceMs: 1000, force: true }),
            operatorAt(NOW),
          ),
        ),
      );
      const keys = await stores[0]!.list(kid);
      expect(new Set(plans.map((plan) => (plan?.ok ? plan.result.generation : -1)))).toEqual(
        new Set([2, 3, 4, 5, 6, 7, 8, 9]),
      );
      expect(keys.filter((key) => key.state === 'published').map((key) => key.generation)).toEqual([9]);
      expect(keys.filter((key) => key.state === 'retiring')).toHaveLength(2);
      expect(keys.filter((key) => key.state === 'destroyed' && key.wrappedPrivate !== null)).toEqual([]);
    });

    it('stages one generation however many ask at once', async () => {
      const kid = await addTenant(db.database, 'stage-race');
      const createKey = (generation: number, state: 'staged' | 'published') =>
        createGenerationRow({ kid, generation, state, publishedAt: null });
      const plans = await Promise.all(
        [db.database, other, db.database, other].map((node) =>
          createSealKeyStore(node).change(kid, (keys) => planGenerate(keys, createKey), operatorAt(NOW)),
        ),
      );
      expect(plans.filter((plan) => plan?.ok)).toHaveLength(1);
      expect(await createSealKeyStore(other).list(kid)).toHaveLength(2);
    });
  });
}
