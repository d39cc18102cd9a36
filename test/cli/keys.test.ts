import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { gpdJson, runGpd, tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import { createOwn, type Own } from './support/own.ts';

/** Seal keys, API keys, and which commands ask before they remove something for good. */

interface MadeKey {
  readonly kid: string;
  readonly generation: number;
  readonly state: string;
  readonly publicKey: string;
}

const states = async ({ query }: Own): Promise<string[]> =>
  (await query('SELECT generation, state FROM seal_keys ORDER BY generation')).map(({ generation, state }) =>
    [generation, state].join(' '),
  );

const privateKey = async ({ query }: Own, generation: number): Promise<unknown> =>
  (await query(`SELECT wrapped_private AS key FROM seal_keys WHERE generation = ${generation}`))[0]?.['key'];

describe.concurrent('gpd keys', () => {
  it('generate stages one further generation, which the next rotate publishes', async () => {
    const mine = await createOwn();
    const staged = await mine.json<MadeKey>(`keys generate ${KID}`);
    expect(staged).toEqual({ kid: KID, generation: 2, state: 'staged', publicKey: staged.publicKey });
    expect(Buffer.from(staged.publicKey, 'base64')).toHaveLength(65);
    expect(await mine.gpd(`keys generate ${KID}`)).toMatchObject({ code: 7, stdout: '' });
    expect(await states(mine)).toEqual(['1 published', '2 staged']);
    expect(await mine.json(`keys rotate ${KID}`)).toEqual({ ...staged, state: 'published' });
    expect(await states(mine)).toEqual(['1 retiring', '2 published']);
  });

  it('rotate publishes a new generation and retires the old one for 7 days; --dry-run only says so', async () => {
    const mine = await createOwn();
    const before = await mine.dump();
    const changed = [
      { generation: 1, state: 'retiring' },
      { generation: 2, state: 'published' },
    ];
    expect(await mine.json(`keys rotate ${KID} --dry-run`)).toEqual({ kid: KID, dryRun: true, changed });
    expect(await mine.dump()).toEqual(before);
    const created = await mine.json<MadeKey>(`keys rotate ${KID}`);
    expect(created).toEqual({ kid: KID, generation: 2, state: 'published', publicKey: created.publicKey });
    const [old] = await mine.json<{ retiresAt: string }[]>(`keys list ${KID}`);
    const grace = Date.parse(old?.retiresAt ?? '') - Date.now();
    expect(grace).toBeGreaterThan(6.99 * 86_400_000);
    expect(grace).toBeLessThan(7 * 86_400_000);
  });

  it('a fourth live generation is 7; --force destroys the oldest', async () => {
    const mine = await createOwn();
    for (let i = 0; i < 2; i += 1) await mine.json(`keys rotate ${KID}`);
    const ran = await mine.gpd(`keys rotate ${KID}`);
    expect(ran).toMatchObject({ code: 7, stdout: '' });
    expect(ran.stderr).toContain('--force');
    expect(await states(mine)).toEqual(['1 retiring', '2 retiring', '3 published']);
    const forced = await mine.json(`keys rotate ${KID} --force --yes`);
    expect(forced).toMatchObject({ generation: 4, state: 'published' });
    expect(await states(mine)).toEqual(['1 destroyed', '2 retiring', '3 retiring', '4 published']);
    expect(await privateKey(mine, 1)).toBeNull();
    expect(await privateKey(mine, 2)).not.toBeNull();
    // A generation whose grace is over does not count.
    const other = await createOwn();
    for (let i = 0; i < 4; i += 1) await other.json(`keys rotate ${KID} --grace 0d`);
    expect((await states(other)).at(-1)).toBe('5 published');
  });

  it('destroy needs --yes without a terminal, and overwrites the private key; once is enough', async () => {
    const mine = await createOwn();
    await mine.json(`keys rotate ${KID}`);
    const destroy = `keys destroy ${KID} 1`;
    const unasked = await mine.gpd(destroy);
    expect(unasked).toMatchObject({ code: 2, stdout: '' });
    expect(unasked.stderr).toContain('--yes');
    expect(await mine.json(`${destroy} --dry-run`)).toMatchObject({ kid: KID, generation: 1, dryRun: true });
    expect(await states(mine)).toEqual(['1 retiring', '2 published']);
    const destroyed = await mine.json(`${destroy} --yes`);
    expect(destroyed).toMatchObject({ kid: KID, generation: 1, state: 'destroyed' });
    expect(await privateKey(mine, 1)).toBeNull();
    expect((await mine.gpd(`${destroy} --yes`)).code).toBe(0);
  });

  it('symmetric makes a shared key and prints it once; a second one replaces it', async () => {
    const mine = await createOwn();
    const created = await mine.json<{ key: string }>(`keys symmetric ${KID}`);
    expect(Object.keys(created).sort()).toEqual(['key', 'kid']);
    expect(Buffer.from(created.key, 'base64')).toHaveLength(32);
    const before = await mine.dump();
    const planned = await mine.json(`keys symmetric ${KID} --dry-run`);
    expect(planned).toEqual({ kid: KID, dryRun: true, replaces: true });
    expect(await mine.dump()).toEqual(before);
    expect((await mine.json(`keys symmetric ${KID}`))['key']).not.toBe(created.key);
    expect(JSON.stringify(await mine.dump())).not.toContain(created.key);
  });

  it('symmetric --import takes a key of 32 bytes and no other', async () => {
    const mine = await createOwn();
    const key = Buffer.alloc(32, 3).toString('base64');
    const file = join(tempDir('import'), 'key');
    writeFileSync(file, `${key}\n`);
    expect(await mine.json(`keys symmetric ${KID} --import ${file}`)).toEqual({ kid: KID, key });
    const { env } = mine;
    const piped = ['keys', 'symmetric', KID, '--import', '-'];
    expect(await gpdJson(piped, { env, input: key })).toEqual({ kid: KID, key });
    for (const invalidKey of [Buffer.alloc(31).toString('base64'), key.replace('=', ''), '']) {
      const ran = await runGpd(piped, { env, input: invalidKey });
      expect(ran).toMatchObject({ code: 2, stdout: '' });
      expect(invalidKey !== '' && ran.stderr.includes(invalidKey)).toBe(false);
    }
    // --import takes only the name of a file: other users of the machine could read a key on the command line.
    expect(await mine.gpd(`keys symmetric ${KID} --import ${key}`)).toMatchObject({ code: 2, stdout: '' });
  });

  it('list shows one tenant or all, never a private key', async () => {
    const mine = await createOwn(['one', 'two'].map((kid) => ({ kid, origins: [] })));
    const all = await mine.json<MadeKey[]>('keys list');
    expect(all.map(({ kid }) => kid)).toEqual(['one', 'two']);
    expect(JSON.stringify(all)).not.toMatch(/private|wrapped/i);
    const { stdout } = await mine.gpd('keys list two');
    expect(stdout).toMatch(/^KID\s+GEN\s+STATE.*\ntwo\s+1\s+published\s.*\n$/);
  });
});

describe.concurrent('gpd apikeys', () => {
  const create = `apikeys create ${KID} --name shop --scope`;

  it.each([
    ['publishable', 'gpd_pk_'],
    ['secret', 'gpd_sk_'],
    ['read-only', 'gpd_ro_'],
    ['operator', 'gpd_op_'],
  ])('create makes a %s key, prints it once and keeps its SHA-256 only', async (scope, prefix) => {
    const mine = await createOwn();
    const created = await mine.json<{ id: string; key: string }>(`${create} ${scope}`);
    expect(created).toEqual({ id: created.id, scope, key: created.key });
    expect(created.key).toMatch(new RegExp(`^${prefix}[A-Za-z0-9_-]{43}$`));
    const dump = JSON.stringify(await mine.dump());
    expect(dump).not.toContain(created.key.slice(prefix.length));
    expect(dump).toContain(createHash('sha256').update(created.key).digest('hex'));
    // Without --json the key stands alone, to be piped on.
    expect((await mine.gpd(`${create} ${scope}`)).stdout).toMatch(/^gpd_[a-z]{2}_[A-Za-z0-9_-]{43}\n$/);
  });

  it('revoke: --dry-run says which key and changes nothing; a second one changes nothing either', async () => {
    const mine = await createOwn();
    const { id } = await mine.json<{ id: string }>(`${create} operator`);
    const [listed] = await mine.json<object[]>(`apikeys list ${KID}`);
    const key = { id, kid: KID, scope: 'operator', name: 'shop', revokedAt: null };
    expect(listed).toMatchObject({ ...key, lastUsedAt: null });
    const before = await mine.dump();
    expect(await mine.json(`apikeys revoke ${id} --dry-run`)).toMatchObject({ ...key, dryRun: true });
    expect(await mine.dump()).toEqual(before);
    const { revokedAt } = await mine.json(`apikeys revoke ${id} --yes`);
    expect(revokedAt).toMatch(/^\d{4}-/);
    expect(await mine.json(`apikeys revoke ${id}`)).toMatchObject({ revokedAt });
  });

  it('rotate puts a key of the same scope and name in place of the old one, or next to it', async () => {
    const mine = await createOwn();
    const old = await mine.json<{ id: string }>(`${create} read-only`);
    const before = await mine.dump();
    await mine.json(`apikeys rotate ${old.id} --dry-run`);
    expect(await mine.dump()).toEqual(before);
    const created = await mine.json<{ id: string; key: string }>(`apikeys rotate ${old.id}`);
    expect(created).toMatchObject({ scope: 'read-only', revoked: old.id });
    expect(created.key).toMatch(/^gpd_ro_/);
    const next = await mine.json<{ id: string }>(`apikeys rotate ${created.id} --keep-old`);
    const rows = await mine.json<Record<string, unknown>[]>(`apikeys list ${KID}`);
    const inUse = rows.filter(({ revokedAt }) => revokedAt === null);
    expect(inUse.map(({ id, name }) => [id, name])).toEqual([
      [created.id, 'shop'],
      [next.id, 'shop'],
    ]);
    expect(await mine.gpd(`apikeys rotate ${old.id}`)).toMatchObject({ code: 7, stdout: '' });
    expect(await mine.json(`audit ${KID} --since 1h --action apikey.revoked`)).toHaveLength(1);
  });
});

describe.concurrent('destructive commands (contract section 9)', () => {
  const DESTRUCTIVE =
    `agents remove, apikeys revoke, apikeys rotate, consent accept-loss, consent purposes remove,
    contests resolve, erase, keys destroy, keys rewrap, keys rotate, keys symmetric, restore, retention run,
    staff remove, tenants remove, webhooks remove`.split(/,\s+/);

  it('take --dry-run and --yes, and no other command takes --yes', async () => {
    const { stdout } = await runGpd(['completion', 'bash']);
    const options = [...stdout.matchAll(/"gpd ([a-z -]+)"\) word="([^"]*)"/g)];
    const taking = (flag: string): (string | undefined)[] =>
      options.filter(([, , words = '']) => words.split(' ').includes(flag)).map(([, name]) => name);
    expect(new Set(taking('--yes'))).toEqual(new Set(DESTRUCTIVE));
    expect(taking('--dry-run')).toEqual(expect.arrayContaining(DESTRUCTIVE));
  });

  it('webhooks remove: --dry-run says what waits and changes nothing', async () => {
    const mine = await createOwn();
    const url = 'https://hooks.example/gpd';
    const { id } = await mine.json<{ id: string }>(`webhooks add ${KID} ${url}`);
    expect(await mine.json(`webhooks list ${KID}`)).toMatchObject([{ id, outbox: {}, lastFailure: null }]);
    const before = await mine.dump();
    const remove = `webhooks remove ${KID} ${id}`;
    expect(await mine.json(`${remove} --dry-run`)).toEqual({ id, dryRun: true, url, waiting: 0 });
    expect(await mine.gpd(remove)).toMatchObject({ code: 2, stdout: '' });
    expect(await mine.dump()).toEqual(before);
    expect(await mine.json(`${remove} --yes`)).toEqual({ id, removed: true });
    expect(await mine.query('SELECT id FROM webhooks')).toEqual([]);
  });
});
