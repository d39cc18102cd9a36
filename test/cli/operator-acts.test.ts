import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tempDir } from '../support/command.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { createOwn } from './support/own.ts';

/** Changes by an operator on the command line are in the audit log of the tenant that they concern. */

interface Row {
  readonly at: string;
  readonly role: string;
  readonly actor: string;
  readonly action: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

const TENANTS = [
  { kid: KID, origins: [ORIGIN] },
  { kid: 'other', origins: [] },
];

// Many starts of the program side by side.
describe.concurrent('the audit log of operators', () => {
  it('four eyes that are switched off and on again leave two rows', async () => {
    const mine = await createOwn(TENANTS);
    for (const value of ['true', 'false'])
      expect((await mine.gpd('tenants', 'set', KID, `review.fourEyes=${value}`)).code).toBe(0);
    const rows = await mine.json<Row[]>('audit', KID, '--action', 'tenant.set');
    expect(rows.map(({ role, detail }) => [role, detail])).toEqual([
      ['operator', { key: 'review.fourEyes', from: true, to: false }],
      ['operator', { key: 'review.fourEyes', from: false, to: true }],
    ]);
    expect(new Set(rows.map(({ actor }) => actor)).size).toBe(1);
    expect(rows[0]?.actor).toMatch(/^[\w-]{43}$/);
    expect(await mine.json('audit', 'other')).toEqual([]);
  });

  it('every act has its row, and no row holds a secret', async () => {
    const mine = await createOwn(TENANTS);
    const policy = join(tempDir('policy'), 'policy.txt');
    writeFileSync(policy, 'what we do');
    const key = await mine.json('apikeys', 'create', KID, '--scope', 'secret', '--name', 'n');
    await mine.json('apikeys', 'revoke', String(key['id']), '--yes');
    await mine.json('keys', 'rotate', KID);
    await mine.json('keys', 'destroy', KID, '1', '--yes');
    const shared = await mine.json('keys', 'symmetric', KID);
    await mine.json('consent', 'purposes', 'set', KID, 'ads', '--title', 'Ads');
    await mine.json('consent', 'policies', KID, '--publish', policy, '--material');
    const hook = await mine.json('webhooks', 'add', KID, 'https://hook.example/secret-path');
    await mine.json('webhooks', 'remove', KID, String(hook['id']), '--yes');
    const rows = await mine.json<Row[]>('audit', KID);
    expect(rows.map(({ action }) => action).reverse()).toEqual([
      'apikey.created',
      'apikey.revoked',
      'key.rotated',
      'key.destroyed',
      'key.rotated',
      'purpose.defined',
      'policy.published',
      'webhook.added',
      'webhook.removed',
    ]);
    const text = JSON.stringify(rows);
    for (const secret of [key['key'], shared['key'], hook['secret'], 'secret-path'])
      expect(text).not.toContain(String(secret));
    expect((await mine.json('consent', 'verify', KID))['ok']).toBe(true);
  });

  it('what concerns the installation is in every tenant’s log, under its own reference', async () => {
    const mine = await createOwn(TENANTS);
    const directory = tempDir('backup');
    const jwks = join(directory, 'jwks.json');
    const x = Buffer.alloc(32, 7).toString('base64url');
    writeFileSync(jwks, JSON.stringify({ keys: [{ kty: 'OKP', crv: 'Ed25519', x }] }));
    await mine.json('agents', 'add', 'https://agent.example', '--jwks', jwks);
    expect(await mine.gpd('agents', 'remove', 'https://nobody.example', '--yes')).toMatchObject({ code: 3 });
    await mine.json('agents', 'remove', 'https://agent.example', '--yes');
    expect(await mine.json('agents', 'list')).toEqual([]);
    const file = join(directory, 'one.backup');
    await mine.json('backup', file);
    await mine.json('keys', 'rewrap', '--yes');
    const actions = async (kid: string): Promise<string[]> =>
      (await mine.json<Row[]>('audit', kid)).map(({ action }) => action).reverse();
    const before = ['agent.added', 'agent.removed', 'backup.made', 'key.rotated'];
    expect([await actions(KID), await actions('other')]).toEqual([before, before]);
    const [one, other] = await Promise.all(
      [KID, 'other'].map(async (kid) => (await mine.json<Row[]>('audit', kid))[0]?.actor),
    );
    expect(one).not.toBe(other);
  });

  it('a tenant whose root secret is damaged stops no backup, and its log has the row', async () => {
    const mine = await createOwn(TENANTS);
    await mine.query(
      "UPDATE tenant_secrets SET wrapped = 'damaged' WHERE kid = 'other' AND purpose = 'root'",
    );
    await mine.json('backup', join(tempDir('backup'), 'one.backup'));
    const rows = await mine.query('SELECT kid, role, actor, action FROM audit_log ORDER BY kid');
    expect(rows).toEqual([
      {
        kid: KID,
        role: 'operator',
        actor: expect.stringMatching(/^[\w-]{43}$/) as unknown,
        action: 'backup.made',
      },
      { kid: 'other', role: 'operator', actor: 'unknown', action: 'backup.made' },
    ]);
  });

  it('a restore is told in what it restored, and a dry run nowhere', async () => {
    const mine = await createOwn(TENANTS);
    const file = join(tempDir('backup'), 'one.backup');
    await mine.json('backup', file);
    await mine.json('tenants', 'set', KID, 'review.fourEyes=true');
    await mine.json('restore', file, '--dry-run');
    expect((await mine.json<Row[]>('audit', KID)).map(({ action }) => action)).toEqual([
      'tenant.set',
      'backup.made',
    ]);
    await mine.json('restore', file, '--yes');
    const rows = await mine.json<Row[]>('audit', KID);
    expect(rows).toMatchObject([{ role: 'operator', action: 'restore.done' }]);
    expect(Object.keys(rows[0]?.detail ?? {})).toEqual(['backup', 'gpd']);
  });
});
