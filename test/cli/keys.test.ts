import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { gpdJson, runGpd, tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import { createOwn, type Own } from './support/own.ts';

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
  it('generate stages a further generation, which the next rotate publishes', async () => {
    const mine = await createOwn();
    const staged = await mine.json<MadeKey>('keys', 'generate', KID);
    expect(staged).toEqual({ kid: KID, generation: 2, state: 'staged', publicKey: staged.publicKey });
    expect(Buffer.from(staged.publicKey, 'base64')).toHaveLength(65);
    expect(await mine.json<MadeKey>('keys', 'rotate', KID)).toEqual({ ...staged, state: 'published' });
    expect(await states(mine)).toEqual(['1 retiring', '2 published']);
  });

  it('7 for a second staged generation', async () => {
    const mine = await createOwn();
    await mine.json<MadeKey>('keys', 'generate', KID);
    expect(await mine.gpd('keys', 'generate', KID)).toMatchObject({ code: 7, stdout: '' });
    expect(await states(mine)).toEqual(['1 published', '2 staged']);
  });

  it('rotate publishes a new generation and retires the old one for 7 days', async () => {
    const mine = await createOwn();
    const created = await mine.json<MadeKey>('keys', 'rotate', KID);
    expect(created).toEqual({ kid: KID, generation: 2, state: 'published', publicKey: created.publicKey });
    const [old] = await mine.json<(MadeKey & { retiresAt: string })[]>('keys', 'list', KID);
    const grace = Date.parse(old?.retiresAt ?? '') - Date.now();
    expect(grace).toBeGreaterThan(6.99 * 86_400_000);
    expect(grace).toBeLessThan(7 * 86_400_000);
  });

  it('a fourth live generation is 7; --force destroys the oldest', async () => {
    const mine = await createOwn();
    await mine.json<MadeKey>('keys', 'rotate', KID);
    await mine.json<MadeKey>('keys', 'rotate', KID);
    const ran = await mine.gpd('keys', 'rotate', KID);
    expect(ran).toMatchObject({ code: 7, stdout: '' });
    expect(ran.stderr).toContain('--force');
    expect(await states(mine)).toEqual(['1 retiring', '2 retiring', '3 published']);
    expect(await mine.json<MadeKey>('keys', 'rotate', KID, '--force')).toMatchObject({
      generation: 4,
      state: 'published',
    });
    expect(await states(mine)).toEqual(['1 destroyed', '2 retiring', '3 retiring', '4 published']);
    expect(await privateKey(mine, 1)).toBeNull();
    expect(await privateKey(mine, 2)).not.toBeNull();
  });

  it('a generation whose grace is over does not count', async () => {
    const mine = await createOwn();
    for (let i = 0; i < 4; i += 1) await mine.json<MadeKey>('keys', 'rotate', KID, '--grace', '0d');
    expect((await states(mine)).at(-1)).toBe('5 published');
  });

  it('rotate --dry-run says what would change and changes nothing', async () => {
    const mine = await createOwn();
    const before = await mine.dump();
    const changed = [
      { generation: 1, state: 'retiring' },
      { generation: 2, state: 'published' },
    ];
    expect(await mine.json<object>('keys', 'rotate', KID, '--dry-run')).toEqual({
      kid: KID,
      dryRun: true,
      changed,
    });
    expect(await mine.dump()).toEqual(before);
  });

  it('destroy needs --yes without a terminal, and asks nothing', async () => {
    const mine = await createOwn();
    await mine.json<MadeKey>('keys', 'rotate', KID);
    const ran = await mine.gpd('keys', 'destroy', KID, '1');
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toContain('--yes');
    expect(await states(mine)).toEqual(['1 retiring', '2 published']);
  });

  it('destroy --dry-run changes nothing; --yes overwrites the private key, and once is enough', async () => {
    const mine = await createOwn();
    await mine.json<MadeKey>('keys', 'rotate', KID);
    const dry = await mine.json<object>('keys', 'destroy', KID, '1', '--dry-run');
    expect(dry).toMatchObject({ kid: KID, generation: 1, dryRun: true });
    expect(await states(mine)).toEqual(['1 retiring', '2 published']);
    const destroyed = await mine.json<MadeKey>('keys', 'destroy', KID, '1', '--yes');
    expect(destroyed).toMatchObject({ kid: KID, generation: 1, state: 'destroyed' });
    expect(await privateKey(mine, 1)).toBeNull();
    expect((await mine.gpd('keys', 'destroy', KID, '1', '--yes')).code).toBe(0);
  });

  it('7 for destroying what is published', async () => {
    const mine = await createOwn();
    expect(await mine.gpd('keys', 'destroy', KID, '1', '--yes')).toMatchObject({ code: 7, stdout: '' });
    expect(await states(mine)).toEqual(['1 published']);
  });

  it('symmetric makes a shared key and prints it once; a second one replaces it', async () => {
    const mine = await createOwn();
    const created = await mine.json<Record<string, string>>('keys', 'symmetric', KID);
    expect(Object.keys(created).sort()).toEqual(['key', 'kid']);
    expect(Buffer.from(created['key'] ?? '', 'base64')).toHaveLength(32);
    const before = await mine.dump();
    const planned = await mine.json('keys', 'symmetric', KID, '--dry-run');
    expect(planned).toEqual({ kid: KID, dryRun: true, replaces: true });
    expect(await mine.dump()).toEqual(before);
    expect((await mine.json<Record<string, string>>('keys', 'symmetric', KID))['key']).not.toBe(
      created['key'],
    );
    expect(JSON.stringify(await mine.dump())).not.toContain(created['key']);
  });

  it('symmetric --import takes a key of 32 bytes and no other', async () => {
    const mine = await createOwn();
    const key = Buffer.alloc(32, 3).toString('base64');
    const file = join(tempDir('import'), 'key');
    writeFileSync(file, `${key}\n`);
    expect(await mine.json<object>('keys', 'symmetric', KID, '--import', file)).toEqual({ kid: KID, key });
    const env = { GPD_DATA_DIR: mine.dataDir };
    const piped = ['keys', 'symmetric', KID, '--import', '-'];
    expect(await gpdJson(piped, { env, input: key })).toEqual({ kid: KID, key });
    for (const invalidKey of [Buffer.alloc(31).toString('base64'), key.replace('=', ''), '']) {
      const ran = await runGpd(piped, { env, input: invalidKey });
      expect(ran).toMatchObject({ code: 2, stdout: '' });
      expect(invalidKey !== '' && ran.stderr.includes(invalidKey)).toBe(false);
    }
    // --import takes only the name of a file: other users of the machine could read a key on the command line.
    expect(await mine.gpd('keys', 'symmetric', KID, '--import', key)).toMatchObject({ code: 2, stdout: '' });
  });

  it('list shows one tenant or all, never a private key', async () => {
    const mine = await createOwn(['one', 'two'].map((kid) => ({ kid, origins: [] })));
    const all = await mine.json<MadeKey[]>('keys', 'list');
    expect(all.map(({ kid }) => kid)).toEqual(['one', 'two']);
    expect(JSON.stringify(all)).not.toMatch(/private|wrapped/i);
    const { stdout } = await mine.gpd('keys', 'list', 'two');
    expect(stdout).toMatch(/^KID\s+GEN\s+STATE.*\ntwo\s+1\s+published\s.*\n$/);
  });

  it.each([
    [2, ['rotate', KID, '--grace', '1w']],
    [2, ['rotate', KID, '--grace=-1d']],
    [2, ['rotate', KID, '--grace', '']],
    [2, ['destroy', KID, '0', '--yes']],
    [2, ['destroy', KID, '1.5', '--yes']],
    [2, ['destroy', KID, 'x', '--yes']],
    [3, ['destroy', KID, '9', '--yes']],
    [3, ['destroy', 'nobody', '1', '--yes']],
    [3, ['generate', 'nobody']],
    [3, ['rotate', 'nobody']],
    [3, ['rotate', 'nobody', '--dry-run']],
    [3, ['list', 'nobody']],
    [3, ['symmetric', 'nobody']],
  ])('%i for keys %j', async (code, args) => {
    const mine = await createOwn();
    const before = await mine.dump();
    expect(await mine.gpd('keys', ...args)).toMatchObject({ code, stdout: '' });
    expect(await mine.dump()).toEqual(before);
  });
});
