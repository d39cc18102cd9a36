import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { planGenerate, planRotate } from '../../../src/keys/generation.ts';
import { changeSealKeys, listSealKeys } from '../../../src/tenants/secrets-store.ts';
import { readSnapshot } from '../../../src/tenants/snapshot-store.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from '../../db/contract/database.ts';
import { operatorAt } from '../../support/act.ts';
import { createGenerationRow, NOW } from '../../support/make.ts';

export function sealKeyContract(make: MakeDatabase): void {
  describe('seal keys', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    it('keeps every field of every state, and lists by generation', async () => {
      const kid = await addTenant(db.database, 'every-state');
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
      await changeSealKeys(
        db.database,
        kid,
        () => ({ ok: true, changed: keys, result: keys[0]! }),
        operatorAt(NOW),
      );
      expect(await listSealKeys(db.database.read, kid)).toEqual([keys[2], keys[1], keys[3], keys[0]]);
      expect(await listSealKeys(other.read, kid)).toEqual([keys[2], keys[1], keys[3], keys[0]]);
    });

    it('overwrites a destroyed private key', async () => {
      const kid = await addTenant(db.database, 'overwrite');
      const key = createGenerationRow({ kid, state: 'destroyed', wrappedPrivate: null, destroyedAt: NOW });
      const plan = () => ({ ok: true, changed: [key], result: key }) as const;
      await changeSealKeys(db.database, kid, plan, operatorAt(NOW));
      const rows = await other.read('seal_keys').where({ kid });
      expect(rows).toHaveLength(1);
      expect(JSON.stringify(rows)).not.toContain('wrapped-1');
    });

    it('writes nothing when the plan throws or one of its rows cannot be written', async () => {
      const kid = await addTenant(db.database, 'throws');
      const before = await readSnapshot(other, -1);
      const throws = () => {
        throw new Error('no plan');
      };
      await expect(changeSealKeys(db.database, kid, throws, operatorAt(NOW))).rejects.toThrow('no plan');
      const good = createGenerationRow({ kid, generation: 2, state: 'staged' });
      const bad = createGenerationRow({ kid, generation: 3, publicKey: null as unknown as string });
      const plan = () => ({ ok: true, changed: [good, bad], result: good }) as const;
      await expect(changeSealKeys(db.database, kid, plan, operatorAt(NOW))).rejects.toThrow();
      expect(await listSealKeys(db.database.read, kid)).toEqual([createGenerationRow({ kid })]);
      expect((await readSnapshot(other, -1)).revision).toBe(before.revision);
    });

    it('lets two nodes rotate at once without two published keys or one number twice', async () => {
      const kid = await addTenant(db.database, 'race');
      const nodes = [db.database, other];
      const createKey = (generation: number, state: 'staged' | 'published') =>
        createGenerationRow({ kid, generation, state, wrappedPrivate: `w${generation}` });
      const plans = await Promise.all(
        Array.from({ length: 8 }, (_, i) =>
          changeSealKeys(
            nodes[i % 2]!,
            kid,
            (keys) => planRotate(keys, createKey, { now: NOW + i, graceMs: 1000, force: true }),
            operatorAt(NOW),
          ),
        ),
      );
      const keys = await listSealKeys(other.read, kid);
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
          changeSealKeys(node, kid, (keys) => planGenerate(keys, createKey), operatorAt(NOW)),
        ),
      );
      expect(plans.filter((plan) => plan?.ok)).toHaveLength(1);
      expect(await listSealKeys(other.read, kid)).toHaveLength(2);
    });
  });
}
