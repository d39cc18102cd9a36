import { describe, expect, it } from 'vitest';
import { hashSecret } from '../../../src/auth/credentials.ts';
import type { Database } from '../../../src/db/engine.ts';
import { bump } from '../../../src/db/meta-store.ts';
import { createApiKeyStore } from '../../../src/tenants/api-key-store.ts';
import { saveTenantSecret } from '../../../src/tenants/secrets-store.ts';
import { tenantSettingsSchema } from '../../../src/tenants/settings.ts';
import { readSnapshot, type SnapshotPage } from '../../../src/tenants/snapshot-store.ts';
import type { TenantSnapshot } from '../../../src/tenants/tenant.ts';
import { createTenantStore } from '../../../src/tenants/tenant-store.ts';
import { macOf } from '../../consent/contract/consent-support.ts';
import { addTenant, holdTransaction, type MakeDatabase } from '../../db/contract/database.ts';
import { operatorAt } from '../../support/act.ts';
import { insertBatches } from '../../support/database.ts';
import { createGenerationRow, createNewTenant, NOW } from '../../support/make.ts';
import { twoNodes } from '../../support/started.ts';

/** Applies polls like a server: it keeps unchanged tenants, and drops removed ones. */
function createView() {
  const tenants = new Map<string, TenantSnapshot>();
  let revision = -1;
  return {
    tenants,
    async poll(database: Database): Promise<SnapshotPage> {
      const page = await readSnapshot(database, revision);
      if (page.revision < revision) throw new Error('the revision went back');
      revision = page.revision;
      for (const kid of tenants.keys()) if (page.kids?.has(kid) === false) tenants.delete(kid);
      for (const changed of page.changed) tenants.set(changed.kid, changed);
      return page;
    },
  };
}

export function snapshotContract(make: MakeDatabase): void {
  describe('snapshot', () => {
    const { db, other } = twoNodes(make);

    it('says at once that there is nobody, and that nothing changed', async () => {
      const empty = await make();
      const { database } = empty;
      const page = await readSnapshot(database, -1);
      expect(page).toEqual({ revision: 0, changed: [], damaged: [], kids: new Set() });
      expect(await readSnapshot(database, 0)).toEqual({ revision: 0, changed: [], damaged: [], kids: null });
      await empty.close();
    });

    it('reads a tenant with all that hangs on it', async () => {
      const kid = await addTenant(db.database, 'whole');
      await saveTenantSecret(db.database, kid, 'symmetric', 'wrapped symmetric', operatorAt(NOW));
      const times = { createdAt: NOW, revokedAt: null, lastUsedOn: null };
      const key = { id: 'k', kid, scope: 'secret', name: 'n', hash: hashSecret('k'), ...times } as const;
      await createApiKeyStore(db.database).insert(key, operatorAt(NOW));
      const { changed } = await readSnapshot(other, -1);
      expect(changed.filter((one) => one.kid === kid)).toEqual([
        {
          ...createNewTenant(kid).tenant,
          revision: expect.any(Number) as number,
          secrets: new Map([
            ['root', 'root of whole'],
            ['symmetric', 'wrapped symmetric'],
          ]),
          keys: [createGenerationRow({ kid })],
          purposes: [],
          apiKeys: [key],
          consentPolicies: [],
          logOrigin: 'gpd.example/ledger/whole',
          policies: {},
          termsMac: macOf(kid).ofTerms({ purposes: [], policies: [] }),
          webhooks: [],
        },
      ]);
    });

    it('reads only who changed, and names everybody', async () => {
      const [one, two] = [await addTenant(db.database, 'one'), await addTenant(db.database, 'two')];
      const { revision } = await readSnapshot(other, -1);
      const unset = () => tenantSettingsSchema.parse({});
      await createTenantStore(db.database).saveSettings(one, unset, operatorAt(NOW));
      const page = await readSnapshot(other, revision);
      expect(page.changed.map(({ kid }) => kid)).toEqual([one]);
      expect(page.kids?.has(two)).toBe(true);
      expect(page.revision).toBeGreaterThan(revision);
    });

    it('waits for the writer before it: revisions are ordered as commits are', async () => {
      let early = -1;
      const slow = await holdTransaction(db.database, async (tx) => {
        early = await bump(tx, 'tenants');
      });
      const laterBump = other.transaction((tx) => bump(tx, 'tenants'));
      const snapshot = await readSnapshot(other, -1);
      await slow.commit();
      expect(await laterBump).toBe(early + 1);
      expect(snapshot.revision).toBe(early - 1);
    });

    it('misses nothing while two nodes write', async () => {
      const kids = await Promise.all([0, 1, 2, 3, 4, 5].map((i) => addTenant(db.database, `busy-${i}`)));
      const view = createView();
      await view.poll(other);
      let writing = true;
      const writers = [db.database, other].map(async (node, n) => {
        for (let round = 1; round <= 12; round += 1) {
          const kid = kids[(round * (n + 1)) % kids.length]!;
          await saveTenantSecret(node, kid, `from-${n}`, `round-${round}`, operatorAt(NOW));
        }
      });
      const poller = (async () => {
        while (writing) await view.poll(other);
      })();
      await Promise.all(writers);
      writing = false;
      await poller;
      await view.poll(other);
      const fullPage = await readSnapshot(db.database, -1);
      for (const snapshot of fullPage.changed) {
        if (!snapshot.kid.startsWith('busy-')) continue;
        expect(view.tenants.get(snapshot.kid)).toEqual(snapshot);
      }
    });

    it('reads more tenants at once than a statement takes parameters', async () => {
      const kids = Array.from({ length: 620 }, (_, i) => `crowd-${String(i).padStart(4, '0')}`);
      const { revision } = await readSnapshot(other, -1);
      await db.database.transaction(async (tx) => {
        const bumped = await bump(tx, 'tenants');
        const rows = kids.map((kid) => ({ kid, created_at: NOW, revision: bumped, settings: '{}' }));
        await insertBatches(tx, 'tenants', rows);
        const secrets = kids.map((kid) => ({ kid, purpose: 'root', wrapped: `root of ${kid}` }));
        await insertBatches(tx, 'tenant_secrets', secrets);
      });
      const page = await readSnapshot(other, revision);
      expect(page.changed.map(({ kid }) => kid).sort()).toEqual(kids);
      for (const { kid, secrets } of page.changed)
        expect(secrets).toEqual(new Map([['root', `root of ${kid}`]]));
    });
  });
}
