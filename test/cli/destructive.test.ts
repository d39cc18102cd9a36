import { describe, expect, it } from 'vitest';
import { KID } from '../support/constants.ts';
import { createOwn } from './support/own.ts';

/** Commands that remove something for good take --dry-run and --yes (contract section 9). */

const DESTRUCTIVE = [
  'agents remove',
  'apikeys revoke',
  'apikeys rotate',
  'consent accept-loss',
  'consent purposes remove',
  'contests resolve',
  'erase',
  'keys destroy',
  'keys rewrap',
  'keys rotate',
  'keys symmetric',
  'restore',
  'retention run',
  'staff remove',
  'tenants remove',
  'webhooks remove',
];

describe.concurrent('destructive commands', () => {
  it('take --dry-run and --yes, and no other command takes --yes', async () => {
    const { stdout } = await (await createOwn()).gpd('completion', 'bash');
    const options = new Map(
      [...stdout.matchAll(/"gpd ([a-z -]+)"\) word="([^"]*)"/g)].map(([, name, words]) => [
        name,
        words ?? '',
      ]),
    );
    const taking = (flag: string): (string | undefined)[] =>
      [...options].filter(([, words]) => words.split(' ').includes(flag)).map(([name]) => name);
    expect(new Set(taking('--yes'))).toEqual(new Set(DESTRUCTIVE));
    expect(taking('--dry-run')).toEqual(expect.arrayContaining(DESTRUCTIVE));
  });

  it('apikeys revoke: --dry-run says which key and changes nothing', async () => {
    const mine = await createOwn();
    const create = ['apikeys', 'create', KID, '--scope', 'secret', '--name', 'shop'];
    const id = (await mine.json<{ id: string }>(...create)).id;
    const before = await mine.dump();
    expect(await mine.json('apikeys', 'revoke', id, '--dry-run')).toMatchObject({
      id,
      kid: KID,
      name: 'shop',
      dryRun: true,
      revokedAt: null,
    });
    expect(await mine.dump()).toEqual(before);
    const revoked = await mine.json<{ revokedAt: string }>('apikeys', 'revoke', id, '--yes');
    expect(revoked.revokedAt).toMatch(/^\d{4}-/);
  });

  it('webhooks remove: --dry-run says what waits and changes nothing', async () => {
    const mine = await createOwn();
    const id = (await mine.json<{ id: string }>('webhooks', 'add', KID, 'https://hooks.example/gpd')).id;
    expect(await mine.json('webhooks', 'list', KID)).toMatchObject([{ id, outbox: {}, lastFailure: null }]);
    const before = await mine.dump();
    expect(await mine.json('webhooks', 'remove', KID, id, '--dry-run')).toEqual({
      id,
      dryRun: true,
      url: 'https://hooks.example/gpd',
      waiting: 0,
    });
    expect(await mine.gpd('webhooks', 'remove', KID, id)).toMatchObject({ code: 2, stdout: '' });
    expect(await mine.dump()).toEqual(before);
    expect(await mine.json('webhooks', 'remove', KID, id, '--yes')).toEqual({ id, removed: true });
    expect(await mine.query('SELECT id FROM webhooks')).toEqual([]);
  });

  it('keys rotate --force takes --yes', async () => {
    const mine = await createOwn();
    for (const flags of [[], [], ['--force', '--yes']]) await mine.json('keys', 'rotate', KID, ...flags);
    const rows = await mine.query('SELECT state FROM seal_keys ORDER BY generation');
    expect(rows.map(({ state }) => state)).toEqual(['destroyed', 'retiring', 'retiring', 'published']);
  });
});
