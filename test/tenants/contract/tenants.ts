import { describe, expect, it } from 'vitest';
import { createFirstPurpose, definedBy, type Purpose } from '../../../src/tenants/purposes.ts';
import { readTenantSecret, saveTenantSecret } from '../../../src/tenants/secrets-store.ts';
import { tenantSettingsSchema } from '../../../src/tenants/settings.ts';
import { readSnapshot } from '../../../src/tenants/snapshot-store.ts';
import { createTenantStore, insertTenant, purposeToRow } from '../../../src/tenants/tenant-store.ts';
import { addTenant, type MakeDatabase } from '../../db/contract/database.ts';
import { operatorAt } from '../../support/act.ts';
import { createGenerationRow, createNewTenant, NOW } from '../../support/make.ts';
import { twoNodes } from '../../support/started.ts';

const settings = tenantSettingsSchema.parse({
  origins: 'https://a.example https://b.example:8443',
  'consent.basis': 'ledger',
  'ledger.public': 'true',
  'retention.days': 30,
  'notice.controller': 'Żółw & Söhne «デバイス» 🐢\n2nd line',
});

const purpose: Purpose = {
  id: 'ads',
  title: 'Werbung für „Kunden“',
  description: '',
  lawfulBasis: 'consent',
  gpc: 'opt-out',
  ttlDays: 365,
  banner: true,
};

export function tenantContract(make: MakeDatabase): void {
  describe('TenantStore', () => {
    const { db, other } = twoNodes(make);

    it('inserts a tenant with all it is made of, and every node sees it', async () => {
      const newTenant = createNewTenant('Whole.Tenant_1', { secrets: { root: 'r', symmetric: 's' } });
      expect(await db.database.transaction((tx) => insertTenant(tx, newTenant))).toBe(true);
      const store = createTenantStore(other);
      expect(await store.get('Whole.Tenant_1')).toEqual(newTenant.tenant);
      expect(await store.get('whole.tenant_1')).toBeNull();
      expect(await store.purposes('Whole.Tenant_1')).toEqual([]);
      expect(await readTenantSecret(other, 'Whole.Tenant_1', 'symmetric')).toBe('s');
      expect(await other.read('seal_keys').where({ kid: 'Whole.Tenant_1' })).toHaveLength(1);
    });

    it('inserts the whole tenant or nothing of it', async () => {
      const key = createGenerationRow({ kid: 'half', publicKey: null as unknown as string });
      const broken = createNewTenant('half', { key });
      await expect(db.database.transaction((tx) => insertTenant(tx, broken))).rejects.toThrow();
      for (const table of ['tenants', 'tenant_secrets', 'seal_keys'])
        expect(await other.read(table).where({ kid: 'half' }), table).toEqual([]);
      await addTenant(db.database, 'half');
    });

    it('gives a kid to one of many who ask at once', async () => {
      const nodes = [db.database, other, db.database, other, other];
      const insertions = nodes.map((node, i) => {
        const tenant = createNewTenant('wanted', { secrets: { root: `root of node ${i}` } });
        return node.transaction((tx) => insertTenant(tx, tenant));
      });
      const answers = await Promise.all(insertions);
      expect(answers.filter(Boolean)).toHaveLength(1);
      const winner = answers.indexOf(true);
      expect(await readTenantSecret(other, 'wanted', 'root')).toBe(`root of node ${winner}`);
    });

    it('keeps settings to the letter, and fills in what an older gpd did not write', async () => {
      const kid = await addTenant(db.database, 'settings');
      const saved = createTenantStore(db.database).saveSettings(kid, () => settings, operatorAt(NOW));
      expect(await saved).toEqual(settings);
      expect((await createTenantStore(other).get(kid))?.settings).toEqual(settings);
      await db.database.transaction((tx) => tx('tenants').where({ kid }).update({ settings: '{}' }));
      expect((await createTenantStore(other).get(kid))?.settings).toEqual(tenantSettingsSchema.parse({}));
    });

    it('lists the purposes of one tenant by their ids, with all their fields', async () => {
      const one = await addTenant(db.database, 'purposes-1');
      const two = await addTenant(db.database, 'purposes-2');
      await db.database.transaction(async (tx) => {
        for (const words of [createFirstPurpose(), purpose])
          await tx('purposes').insert(purposeToRow(one, definedBy(1, words, undefined, true)));
        const second = definedBy(2, { ...purpose, gpc: 'ignore' }, undefined, true);
        await tx('purposes').insert(purposeToRow(two, second));
      });
      expect(await createTenantStore(other).purposes(one)).toEqual([purpose, createFirstPurpose()]);
      expect(await createTenantStore(other).purposes(two)).toEqual([{ ...purpose, gpc: 'ignore' }]);
    });

    it('puts a secret in place of an older one of the same purpose only', async () => {
      const kid = await addTenant(db.database, 'secrets');
      expect(await saveTenantSecret(db.database, kid, 'symmetric', 'first', operatorAt(NOW))).toBe(true);
      expect(await saveTenantSecret(db.database, kid, 'symmetric', 'second', operatorAt(NOW))).toBe(true);
      expect(await readTenantSecret(other, kid, 'symmetric')).toBe('second');
      expect(await readTenantSecret(other, kid, 'root')).toBe('root of secrets');
    });

    it('bumps the revision with every change', async () => {
      const kid = await addTenant(db.database, 'bumped');
      const store = createTenantStore(db.database);
      const changes = [
        () => store.saveSettings(kid, () => settings, operatorAt(NOW)),
        () => saveTenantSecret(db.database, kid, 'symmetric', `w${NOW}`, operatorAt(NOW)),
      ];
      for (const change of changes) {
        const { revision } = await readSnapshot(other, -1);
        await change();
        const page = await readSnapshot(other, revision);
        expect(page.changed.map(({ kid }) => kid)).toEqual([kid]);
      }
    });
  });
}
