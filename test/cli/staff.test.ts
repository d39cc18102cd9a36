import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tempDir } from '../support/command.ts';
import { KID } from '../support/constants.ts';
import { createOwn } from './support/own.ts';

/** Arguments and messages of `gpd staff`. */

describe('gpd staff', () => {
  it('prints one link with the name, and keeps nothing that opens it', async () => {
    const mine = await createOwn();
    const { stdout } = await mine.gpd('staff', 'invite', 'Rosa R', '--role', 'dpo');
    expect(stdout).toMatch(/^http:\/\/127\.0\.0\.1:8080\/console\/join#Rosa%20R\.[\w-]{43}\n$/);
    const [, secret = ''] = /\.([\w-]{43})\n$/.exec(stdout) ?? [];
    const listed = await mine.gpd('staff', 'list');
    expect(listed.stdout).toMatch(/Rosa R +\w+ +dpo +invited until \d{4}-/);
    const shown = await mine.gpd('audit', KID, '--json');
    for (const text of [listed.stdout, shown.stdout]) expect(text).not.toContain(secret);
    expect(shown.stdout).not.toContain('Rosa');
  });

  it.each([
    [['a@b.c', '--role', 'dpo', '--tenant', KID], 2],
    [['Rosa', '--role', 'admin', '--tenant', KID], 2],
    [['Rosa', '--role', 'dpo', '--tenant', 'nobody'], 3],
  ])('refuses %j', async (words, code) => {
    expect((await (await createOwn()).gpd('staff', 'invite', ...words)).code).toBe(code);
  });

  it('remove: --dry-run changes nothing, and an unknown name is not found', async () => {
    const mine = await createOwn();
    await mine.gpd('staff', 'invite', 'Rosa', '--role', 'dpo', '--tenant', KID);
    expect((await mine.gpd('staff', 'remove', 'Rosa', '--dry-run')).stdout).toContain('would be removed');
    expect(await mine.json('staff', 'list')).toHaveLength(1);
    expect((await mine.gpd('staff', 'remove', 'Rosa', '--yes')).code).toBe(0);
    expect((await mine.gpd('staff', 'remove', 'Rosa', '--yes')).code).toBe(3);
  });

  it('a restore brings back no invitation, which may have been used or replaced since the backup', async () => {
    const mine = await createOwn();
    const file = join(tempDir('backup'), 'gpd.backup');
    await mine.gpd('staff', 'invite', 'Rosa', '--role', 'dpo');
    await mine.gpd('backup', file);
    await mine.gpd('staff', 'invite', 'Rosa', '--role', 'reviewer');
    expect((await mine.gpd('restore', file, '--yes')).code).toBe(0);
    expect(await mine.query('SELECT role, invite_hash FROM staff')).toEqual([
      { role: 'dpo', invite_hash: null },
    ]);
    const [member] = await mine.json<readonly { readonly inviteUntil: string }[]>('staff', 'list');
    expect(Date.parse(member?.inviteUntil ?? '')).toBeLessThanOrEqual(Date.now());
    expect((await mine.gpd('staff', 'invite', 'Rosa', '--role', 'reviewer')).code).toBe(0);
  });
});
