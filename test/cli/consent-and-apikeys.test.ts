import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { KID, ORIGIN } from '../support/constants.ts';
import { createOwn } from './support/own.ts';

const TENANTS = [
  { kid: KID, origins: [ORIGIN] },
  { kid: 'other', origins: [] },
];

describe.concurrent('gpd apikeys', () => {
  it.each([
    ['publishable', 'gpd_pk_'],
    ['secret', 'gpd_sk_'],
    ['read-only', 'gpd_ro_'],
    ['operator', 'gpd_op_'],
  ])('create makes a %s key, prints it once and keeps its SHA-256 only', async (scope, prefix) => {
    const mine = await createOwn(TENANTS);
    const created = await mine.json<Record<string, string>>(
      'apikeys',
      'create',
      KID,
      '--scope',
      scope,
      '--name',
      'shop',
    );
    expect(created).toEqual({ id: created['id'], scope, key: created['key'] });
    const key = created['key'] ?? '';
    expect(key).toMatch(new RegExp(`^${prefix}[A-Za-z0-9_-]{43}$`));
    const dump = JSON.stringify(await mine.dump());
    expect(dump).not.toContain(key.slice(prefix.length));
    expect(dump).toContain(createHash('sha256').update(key).digest('hex'));
  });

  it('create without --json prints the key alone, to be piped on', async () => {
    const mine = await createOwn(TENANTS);
    const { stdout } = await mine.gpd('apikeys', 'create', KID, '--scope', 'secret', '--name', 'n');
    expect(stdout).toMatch(/^gpd_sk_[A-Za-z0-9_-]{43}\n$/);
  });

  it.each([
    ['apikeys', 'list'],
    ['webhooks', 'list'],
    ['consent', 'policies'],
  ])('%s %s of a tenant that is not there is 3, and no empty table', async (...words) => {
    const mine = await createOwn(TENANTS);
    expect(await mine.gpd(...words, 'nobody', '--json')).toMatchObject({ code: 3, stdout: '' });
  });

  it('list shows one tenant or all; revoke is final', async () => {
    const mine = await createOwn(TENANTS);
    const created = await mine.json<Record<string, string>>(
      'apikeys',
      'create',
      'other',
      '--scope',
      'operator',
      '--name',
      'ops',
    );
    const [listed] = await mine.json<Record<string, unknown>[]>('apikeys', 'list', 'other');
    expect(listed).toMatchObject({
      id: created['id'],
      kid: 'other',
      scope: 'operator',
      name: 'ops',
      revokedAt: null,
      lastUsedAt: null,
    });
    const revoked = await mine.json('apikeys', 'revoke', created['id'] ?? '');
    expect(revoked['revokedAt']).toMatch(/^\d{4}-/);
    expect(await mine.json('apikeys', 'revoke', created['id'] ?? '')).toMatchObject({
      revokedAt: revoked['revokedAt'],
    });
  });

  it.each([
    [2, ['create', KID, '--scope', 'admin', '--name', 'n']],
    [2, ['create', KID, '--scope', 'secret']],
    [2, ['create', KID, '--name', 'n']],
    [2, ['create', 'a|b', '--scope', 'secret', '--name', 'n']],
    [3, ['create', 'nobody', '--scope', 'secret', '--name', 'n']],
    [3, ['revoke', 'key_none']],
  ])('%i for apikeys %j', async (code, args) => {
    const mine = await createOwn(TENANTS);
    const before = await mine.dump();
    expect(await mine.gpd('apikeys', ...args)).toMatchObject({ code, stdout: '' });
    expect(await mine.dump()).toEqual(before);
  });
});

describe.concurrent('gpd apikeys rotate', () => {
  it('puts a key of the same scope and name in place of the old one, or next to it', async () => {
    const mine = await createOwn(TENANTS);
    const make = ['apikeys', 'create', KID, '--scope', 'read-only', '--name', 'reports'];
    const old = await mine.json<Record<string, string>>(...make);
    const before = await mine.dump();
    await mine.json('apikeys', 'rotate', old['id'] ?? '', '--dry-run');
    expect(await mine.dump()).toEqual(before);
    const created = await mine.json<Record<string, string>>('apikeys', 'rotate', old['id'] ?? '');
    expect(created).toMatchObject({ scope: 'read-only', revoked: old['id'] });
    expect(created['key']).toMatch(/^gpd_ro_/);
    const next = await mine.json<Record<string, string>>(
      'apikeys',
      'rotate',
      created['id'] ?? '',
      '--keep-old',
    );
    const rows = await mine.json<Record<string, unknown>[]>('apikeys', 'list', KID);
    const inUse = rows.filter(({ revokedAt }) => revokedAt === null);
    expect(inUse.map(({ id, name }) => [id, name])).toEqual([
      [created['id'], 'reports'],
      [next['id'], 'reports'],
    ]);
    expect(await mine.gpd('apikeys', 'rotate', old['id'] ?? '')).toMatchObject({ code: 7, stdout: '' });
    expect(await mine.gpd('apikeys', 'rotate', 'key_none')).toMatchObject({ code: 3, stdout: '' });
    const acts = await mine.json<{ action: string }[]>(
      'audit',
      KID,
      '--since',
      '1h',
      '--action',
      'apikey.revoked',
    );
    expect(acts).toHaveLength(1);
  });
});

describe.concurrent('gpd consent purposes', () => {
  it('remove: no check of it is allowed, and the log still verifies', async () => {
    const mine = await createOwn(TENANTS);
    const check = () => mine.json('consent', 'check', KID, 'alice', 'news');
    await mine.json('consent', 'purposes', 'set', KID, 'news', '--title', 'News');
    await mine.json('consent', 'grant', KID, 'alice', 'news');
    expect(await check()).toMatchObject({ reason: 'granted' });
    const before = await mine.dump();
    await mine.json('consent', 'purposes', 'remove', KID, 'news', '--dry-run');
    expect(await mine.dump()).toEqual(before);
    expect(await mine.json('consent', 'purposes', 'remove', KID, 'news')).toEqual({
      kid: KID,
      id: 'news',
      removed: true,
    });
    expect(await check()).toMatchObject({ allowed: false, reason: 'unknown-purpose' });
    expect(await mine.json('consent', 'verify', KID)).toMatchObject({ ok: true });
    expect(await mine.gpd('consent', 'purposes', 'remove', KID, 'news')).toMatchObject({ code: 3 });
    const args = ['consent', 'purposes', 'remove', KID, 'device-identification'];
    expect(await mine.gpd(...args)).toMatchObject({ code: 7, stdout: '' });
    const [row] = await mine.json<{ detail: object }[]>('audit', KID);
    expect(row?.detail).toEqual({ purpose: 'news', removed: true });
  });

  it('set defines a purpose with the defaults, and changes what is named', async () => {
    const mine = await createOwn(TENANTS);
    const first = await mine.json('consent', 'purposes', 'set', KID, 'analytics', '--title', 'Analytics');
    expect(first).toMatchObject({ id: 'analytics', title: 'Analytics', gpc: 'opt-out' });
    const second = await mine.json(
      'consent',
      'purposes',
      'set',
      KID,
      'analytics',
      '--title',
      'Measuring',
      '--gpc',
      'ignore',
      '--ttl-days',
      '30',
    );
    expect(second).toMatchObject({ id: 'analytics', title: 'Measuring', gpc: 'ignore', ttlDays: 30 });
    const third = await mine.json('consent', 'purposes', 'set', KID, 'analytics', '--title', 'Measuring');
    expect(third).toMatchObject({ gpc: 'ignore', ttlDays: 30 });
    const listed = await mine.json<{ id: string }[]>('consent', 'purposes', 'list', KID);
    expect(listed.map(({ id }) => id).sort()).toEqual(['analytics', 'device-identification']);
    expect(listed.find(({ id }) => id === 'analytics')).toMatchObject({
      title: 'Measuring',
      gpc: 'ignore',
      ttlDays: 30,
    });
  });

  it('belongs to one tenant', async () => {
    const mine = await createOwn(TENANTS);
    await mine.json('consent', 'purposes', 'set', KID, 'mine', '--title', 'Mine');
    const listed = await mine.json<{ id: string }[]>('consent', 'purposes', 'list', 'other');
    expect(listed.map(({ id }) => id)).toEqual(['device-identification']);
  });

  it.each([
    [2, ['set', KID, 'Analytics', '--title', 't']],
    [2, ['set', KID, '-x', '--title', 't']],
    [2, ['set', KID, 'x'.repeat(65), '--title', 't']],
    [2, ['set', KID, 'ads', '--title', 't', '--gpc', 'never']],
    [2, ['set', KID, 'ads', '--title', 't', '--ttl-days', '0']],
    [2, ['set', KID, 'ads', '--title', 't', '--ttl-days', 'x']],
    [2, ['set', KID, 'ads']],
    [3, ['set', 'nobody', 'ads', '--title', 't']],
    [3, ['list', 'nobody']],
  ])('%i for consent purposes %j', async (code, args) => {
    const mine = await createOwn(TENANTS);
    const before = await mine.dump();
    expect(await mine.gpd('consent', 'purposes', ...args)).toMatchObject({ code, stdout: '' });
    expect(await mine.dump()).toEqual(before);
  });
});
