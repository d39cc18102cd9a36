import { describe, expect, it } from 'vitest';
import { newDirectory } from '../../../src/agents/service.ts';
import { addDirectory, removeDirectory } from '../../../src/agents/store.ts';
import { listAudit } from '../../../src/audit/audit-store.ts';
import { publishPolicy, savePurposes } from '../../../src/consent/terms-store.ts';
import { savePolicy } from '../../../src/ingest/policy-store.ts';
import { planDestroy, planRotate } from '../../../src/keys/generation.ts';
import { insertWebhook, removeWebhook } from '../../../src/notify/webhooks-store.ts';
import { tenantPolicySchema } from '../../../src/schema/policy.ts';
import { createApiKeyStore } from '../../../src/tenants/api-key-store.ts';
import { createFirstPurpose } from '../../../src/tenants/purposes.ts';
import { changeSealKeys, saveTenantSecret } from '../../../src/tenants/secrets-store.ts';
import { createTenantStore } from '../../../src/tenants/tenant-store.ts';
import { termsOf } from '../../consent/contract/consent-support.ts';
import { addTenant, type MakeDatabase } from '../../db/contract/database.ts';
import { operatorAt } from '../../support/act.ts';
import { createGenerationRow, NOW } from '../../support/make.ts';
import { started } from '../../support/started.ts';

/** An operator's act and its row in the audit log are one transaction. */
export function actContract(make: MakeDatabase): void {
  describe('acts of operators', () => {
    const db = started(make);

    const by = operatorAt(NOW);

    /** The oldest first. */
    async function readActs(kid: string): Promise<readonly (readonly [string, unknown])[]> {
      const rows = await listAudit(db.database, kid, {}, 100);
      for (const { role, actor, object } of rows)
        expect({ role, actor, object }).toEqual({ role: 'operator', actor: 'somebody', object: null });
      return rows.map(({ action, detail }) => [action, detail] as const).reverse();
    }

    it('a setting: what it was and what it is, free text by its hash alone, and what stays or was refused is not told', async () => {
      const kid = await addTenant(db.database, 'act-settings');
      const store = createTenantStore(db.database);
      const saveChange = (change: () => object) =>
        store.saveSettings(kid, (before) => ({ ...before, ...change() }), by);
      await saveChange(() => ({ 'review.fourEyes': true, 'retention.days': 90 }));
      await saveChange(() => ({ origins: ['https://a.example'], 'notice.contact': 'dora@shop.example' }));
      await saveChange(() => ({ 'review.fourEyes': true }));
      const before = (await store.get(kid))?.settings;
      const refuse = (): never => {
        throw new Error('not valid');
      };
      await expect(saveChange(refuse)).rejects.toThrow('not valid');
      expect((await store.get(kid))?.settings).toEqual(before);
      const hash = expect.stringMatching(/^sha256:[0-9a-f]{16}$/) as unknown;
      expect(await readActs(kid)).toEqual([
        ['tenant.set', { key: 'review.fourEyes', from: false, to: true }],
        ['tenant.set', { key: 'origins', from: expect.any(Array) as unknown, to: ['https://a.example'] }],
        ['tenant.set', { key: 'notice.contact', from: 'empty', to: hash }],
      ]);
    });

    it('two changes at once are both kept, and both told', async () => {
      const kid = await addTenant(db.database, 'act-race');
      const store = createTenantStore(db.database);
      const other = createTenantStore(await db.connect());
      await Promise.all([
        store.saveSettings(kid, (now) => ({ ...now, 'retention.days': 30 }), by),
        other.saveSettings(kid, (now) => ({ ...now, 'ledger.public': true }), by),
      ]);
      expect((await store.get(kid))?.settings).toMatchObject({ 'retention.days': 30, 'ledger.public': true });
      expect(new Set((await readActs(kid)).map(([, detail]) => (detail as { key: string }).key))).toEqual(
        new Set(['retention.days', 'ledger.public']),
      );
    });

    it('keys, terms and webhooks by their ids, without a secret; a second revocation or removal changes nothing', async () => {
      const { database } = db;
      const kid = await addTenant(database, 'act-keys');
      const apiKeys = createApiKeyStore(database);
      const fields = { scope: 'secret', name: 'of Dora', hash: 'h'.repeat(64) } as const;
      const times = { createdAt: NOW, revokedAt: null, lastUsedOn: null };
      await apiKeys.insert({ id: 'key_1', kid, ...fields, ...times }, by);
      for (let i = 0; i < 2; i += 1) await apiKeys.revoke('key_1', by);

      const newKey = (generation: number) => createGenerationRow({ kid, generation, state: 'published' });
      const rotation = { now: NOW, graceMs: 1000, force: false };
      await changeSealKeys(database, kid, (keys) => planRotate(keys, newKey, rotation), by);
      await changeSealKeys(database, kid, (keys) => planDestroy(keys, 1, NOW), by);
      await saveTenantSecret(database, kid, 'symmetric', 'wrapped', by);

      const purpose = createFirstPurpose();
      await savePurposes(database, termsOf(kid), [purpose], { ...by, apiKey: 'key_9' });
      await publishPolicy(database, termsOf(kid), { text: 'what we do', material: true }, by);
      const rules = tenantPolicySchema.parse({ off: ['W6'] });
      for (const policy of [rules, null]) await savePolicy(database, kid, 'live', policy, by);

      const url = 'https://hook.example/services/T0/secret?token=x';
      const events = ['decision.recorded'] as const;
      const hook = { url, events, allowPrivate: false, wrappedSecret: 'w', createdAt: NOW };
      await insertWebhook(database, { kid, id: 'wh_1', ...hook }, by);
      for (let i = 0; i < 2; i += 1) await removeWebhook(database, kid, 'wh_1', by);

      const { id, gpc, ttlDays } = purpose;
      const version = expect.stringMatching(/./) as unknown;
      expect(await readActs(kid)).toEqual([
        ['apikey.created', { id: 'key_1', scope: 'secret' }],
        ['apikey.revoked', { id: 'key_1', scope: 'secret' }],
        ['key.rotated', { key: 'seal', generation: 2 }],
        ['key.destroyed', { key: 'seal', generation: 1 }],
        ['key.rotated', { key: 'symmetric' }],
        ['purpose.defined', { purpose: id, gpc, ttlDays, apiKey: 'key_9' }],
        ['policy.published', { version: 1, material: true }],
        ['tenant.set', { key: 'policy.live', from: null, to: version }],
        ['tenant.set', { key: 'policy.live', from: version, to: null }],
        ['webhook.added', { id: 'wh_1', host: 'hook.example', events: [...events] }],
        ['webhook.removed', { id: 'wh_1' }],
      ]);
    });

    it('agents are every tenant’s: each log has the row, and one that knows nobody has none', async () => {
      const kids = ['act-one', 'act-two', 'act-unknown'];
      for (const kid of kids) await addTenant(db.database, kid);
      const { role, ref } = by;
      const all = { actorOf: (kid: string) => (kid === 'act-unknown' ? undefined : { role, ref }), at: NOW };
      const url = 'https://agent.example/d';
      await addDirectory(db.database, newDirectory(url, 'pinned'), all);
      expect(await removeDirectory(db.database, url, all)).toBe(true);
      expect(await removeDirectory(db.database, url, all)).toBe(false);
      const rows = [
        ['agent.added', { agent: url, source: 'pinned' }],
        ['agent.removed', { agent: url }],
      ];
      expect(await Promise.all(kids.map(readActs))).toEqual([rows, rows, []]);
    });
  });
}
