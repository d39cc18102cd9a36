import { describe, expect, it } from 'vitest';
import { readPolicies, readShadowCounts, savePolicy } from '../../../src/ingest/policy-store.ts';
import { tenantPolicySchema } from '../../../src/schema/policy.ts';
import { readSnapshot } from '../../../src/tenants/snapshot-store.ts';
import { addTenant, type MakeDatabase } from '../../db/contract/database.ts';
import { operatorAt } from '../../support/act.ts';
import { createEntry, DAY, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { twoNodes } from '../../support/started.ts';

const policy = tenantPolicySchema.parse({
  weights: { M7: 0.05 },
  off: ['W6'],
  monitors: { networks: ['10.0.0.0/8'] },
});

export function policyContract(make: MakeDatabase): void {
  describe('policy store', () => {
    const { db, other } = twoNodes(make);

    it('keeps one policy a mode, and takes it away', async () => {
      const kid = await addTenant(db.database, 'modes');
      expect(await readPolicies(other, kid)).toEqual({});
      expect(await savePolicy(db.database, kid, 'live', policy, operatorAt(NOW))).toBe(true);
      await savePolicy(db.database, kid, 'shadow', { ...policy, off: [] }, operatorAt(NOW));
      await savePolicy(db.database, kid, 'live', { ...policy, weights: {} }, operatorAt(NOW));
      expect(await readPolicies(other, kid)).toEqual({
        live: { ...policy, weights: {} },
        shadow: { ...policy, off: [] },
      });
      await savePolicy(db.database, kid, 'live', null, operatorAt(NOW));
      expect(await readPolicies(other, kid)).toEqual({ shadow: { ...policy, off: [] } });
    });

    it('knows no policy of an unknown tenant', async () => {
      expect(await savePolicy(db.database, 'nobody', 'live', policy, operatorAt(NOW))).toBe(false);
      expect(await other.read('tenant_policies').where({ kid: 'nobody' })).toEqual([]);
    });

    it('shows a change to who polls', async () => {
      const kid = await addTenant(db.database, 'polled');
      const { revision } = await readSnapshot(other, -1);
      await savePolicy(db.database, kid, 'live', policy, operatorAt(NOW));
      const page = await readSnapshot(other, revision);
      expect(page.changed.map((changed) => [changed.kid, changed.policies])).toEqual([
        [kid, { live: policy }],
      ]);
    });

    it('counts what the shadow would have said, for recorded verdicts only', async () => {
      const recorders = [createRecorder(db.database), createRecorder(other)];
      const record = (n: number, id: string, shadow: 'human' | 'unknown', day = DAY) =>
        recorders[n]!.record(
          createEntry({ kid: 'shadowed', id, shadow: { policyVersion: 'p1', class: shadow, day } }),
        );
      await Promise.all([record(0, 'a', 'human'), record(0, 'b', 'human'), record(1, 'c', 'unknown')]);
      await record(1, 'd', 'human', DAY + 1);
      await record(0, 'a', 'human');
      await recorders[0]!.record(createEntry({ kid: 'shadowed', id: 'without' }));
      const counts = await readShadowCounts(other, 'shadowed');
      expect(counts.sort((a, b) => b.verdicts - a.verdicts)).toEqual([
        { policyVersion: 'p1', live: 'human', shadow: 'human', verdicts: 3 },
        { policyVersion: 'p1', live: 'human', shadow: 'unknown', verdicts: 1 },
      ]);
      expect(await readShadowCounts(other, 'nobody')).toEqual([]);
    });
  });
}
