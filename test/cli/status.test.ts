import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ServerStatus } from '../../src/ops/status.ts';
import { gpdJson, runGpd, tempDir } from '../support/command.ts';
import { expectCore, post } from '../support/expect.ts';
import { createBundle } from '../support/seal.ts';
import { startGpd } from '../support/server.ts';
import { createOwn } from './support/own.ts';

describe('gpd status', () => {
  it('tells of the running server and of what the database holds', async () => {
    const gpd = await startGpd();
    for (let i = 0; i < 3; i += 1) expectCore(await post(gpd.url, createBundle(gpd.targets[0]!)), 'ok');
    const status = await gpd.json<ServerStatus>(['status', '--url', gpd.url]);
    expect(status).toMatchObject({
      server: { url: gpd.url, running: true, ready: true, version: status.version, notReady: [] },
      database: { kind: 'sqlite', lastBackupAt: null },
      tenants: 1,
      decisions: { total: 3, lastMinute: 3, lastHour: 3, lastDay: 3 },
      ledgerEntries: 2,
      webhooks: { waiting: 0, failed: 0 },
    });
    expect(Object.values(status.decisions.byClass)).toEqual([3]);
    expect(status.database.bytes).toBeGreaterThan(100_000);
    await gpd.json(['backup', join(tempDir('backups'), 'b')]);
    await gpd.stop();
    const { code, stdout } = await gpd.cli(['status', '--url', gpd.url, '--json']);
    expect(code).toBe(3);
    const stopped = JSON.parse(stdout) as ServerStatus;
    expect(stopped.server).toMatchObject({ running: false, ready: false, version: null });
    expect(Date.parse(stopped.database.lastBackupAt ?? '')).toBeLessThanOrEqual(Date.now());
    const words = await gpd.cli(['status', '--url', gpd.url]);
    expect(words.stdout).toMatch(/server +nothing answers[\s\S]*decisions +3 in a minute/);
  });

  it('gpd top tells from the database where there are no metrics', async () => {
    const { json } = await createOwn();
    expect(await json('top')).toMatchObject({ source: 'database', verdictsPerSecond: 0, ledgerEntries: 2 });
  });

  it('refuses what is no address', async () => {
    const { gpd } = await createOwn();
    for (const command of ['status', 'top']) {
      expect(await gpd(command, '--url', 'file:///etc/passwd')).toMatchObject({ code: 2, stdout: '' });
    }
  });
});

describe('gpd completion', () => {
  /** Returns the completions that bash offers after these words. */
  function offered(script: string, ...words: string[]): string[] {
    const program = `source "$0"; gpd() { echo '[{"kid":"shop"},{"kid":"blog"}]'; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gpd; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return execFileSync('bash', ['-c', program, script, ...words], { encoding: 'utf8' })
      .trim()
      .split('\n');
  }

  it('bash completes commands and options, also behind an argument', async () => {
    const script = join(tempDir('completion'), 'gpd.bash');
    writeFileSync(script, (await runGpd(['completion', 'bash'])).stdout);
    execFileSync('bash', ['-n', script]);
    expect(offered(script, 'gpd', 'ba')).toEqual(['backup']);
    expect(offered(script, 'gpd', 'keys', 'ro')).toEqual(['rotate']);
    expect(offered(script, 'gpd', 'keys', 'rotate', 'shop', '--gr')).toEqual(['--grace']);
    expect(offered(script, 'gpd', 'consent', 'purposes', 's')).toEqual(['set']);
    expect(offered(script, 'gpd', 'd')).not.toContain('dev');
    expect(offered(script, 'gpd', 'keys', 'rotate', 'sh')).toEqual(['shop']);
    expect(offered(script, 'gpd', 'erase', '--tenant', '')).toEqual(['shop', 'blog']);
    expect(offered(script, 'gpd', 'tenants', 'set', 'shop', 'reten')).toEqual(['retention.days=']);
  });

  it('fish and zsh have every command, too', async () => {
    const help = (await runGpd(['--help'])).stdout;
    const commands = [...help.split('Commands:')[1]!.matchAll(/^ {2}([a-z-]+)/gm)].map(
      (match) => match[1] ?? '',
    );
    expect(commands.length).toBeGreaterThan(15);
    const fish = (await runGpd(['completion', 'fish'])).stdout;
    const zsh = (await runGpd(['completion', 'zsh'])).stdout;
    expect(zsh.startsWith('#compdef gpd\n')).toBe(true);
    for (const name of commands.filter((command) => command !== 'help')) {
      expect(fish).toContain(`-a ${name} -d`);
      expect(zsh).toContain(`"gpd ${name}")`);
    }
  });

  it('knows three shells', async () => {
    expect(await gpdJson(['completion', 'bash'])).toMatchObject({
      shell: 'bash',
      script: expect.any(String),
    });
    expect(await runGpd(['completion', 'tcsh'])).toMatchObject({ code: 2, stdout: '' });
    await expect(gpdJson(['completion', 'constructor'])).rejects.toThrow(/ended with 2/);
  });
});
