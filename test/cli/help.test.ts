import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { createProgram } from '../../src/cli/gpd.ts';
import { runGpd, tempDir } from '../support/command.ts';
import { wordsOf } from './support/own.ts';

/** Help texts, whose examples can be typed, and the completion of shells. */

const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
/** Lists a command and all commands below it. */
const all = (command: Command): Command[] => [command, ...command.commands.flatMap(all)];
const doesSomething = (command: Command): boolean =>
  (command as Command & { _actionHandler: unknown })._actionHandler !== null;

const paths = all(await createProgram())
  .filter(doesSomething)
  .map(pathOf)
  .filter((path) => path !== 'gpd');

describe('every command', () => {
  it('is one of at least seventy', () => expect(paths.length).toBeGreaterThan(70));

  it.each(paths)('%s shows an example that parses', async (path) => {
    const { stdout, code } = await runGpd([...path.split(' ').slice(1), '--help']);
    expect(code).toBe(0);
    const examples = [...stdout.matchAll(/^ {2}(gpd .*)$/gm)].map(([, line]) => line ?? '');
    expect(examples).not.toEqual([]);
    for (const example of examples) {
      const ran: string[] = [];
      const parsing = await createProgram();
      for (const command of all(parsing))
        if (doesSomething(command)) command.action(() => void ran.push(pathOf(command)));
      await parsing.parseAsync(wordsOf(example).slice(1), { from: 'user' });
      expect(ran).toEqual([path]);
    }
  });
});

describe('gpd completion', () => {
  it('bash completes commands and options, also behind an argument', async () => {
    const script = join(tempDir('completion'), 'gpd.bash');
    writeFileSync(script, (await runGpd(['completion', 'bash'])).stdout);
    execFileSync('bash', ['-n', script]);
    const program = `source "$0"; gpd() { echo '[{"kid":"shop"},{"kid":"blog"}]'; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gpd; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const offered = (...words: string[]): string[] =>
      execFileSync('bash', ['-c', program, script, 'gpd', ...words], { encoding: 'utf8' })
        .trim()
        .split('\n');
    expect(offered('ba')).toEqual(['backup']);
    expect(offered('keys', 'ro')).toEqual(['rotate']);
    expect(offered('keys', 'rotate', 'shop', '--gr')).toEqual(['--grace']);
    expect(offered('consent', 'purposes', 's')).toEqual(['set']);
    expect(offered('d')).not.toContain('dev');
    expect(offered('keys', 'rotate', 'sh')).toEqual(['shop']);
    expect(offered('erase', '--tenant', '')).toEqual(['shop', 'blog']);
    expect(offered('tenants', 'set', 'shop', 'reten')).toEqual(['retention.days=']);
  });

  it('fish and zsh have every command, too', async () => {
    const fish = (await runGpd(['completion', 'fish'])).stdout;
    const zsh = (await runGpd(['completion', 'zsh'])).stdout;
    expect(zsh.startsWith('#compdef gpd\n')).toBe(true);
    const [, list = ''] = (await runGpd(['--help'])).stdout.split('Commands:');
    const shown = [...list.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name]) => name);
    expect(shown.length).toBeGreaterThan(15);
    for (const name of shown.filter((command) => command !== 'help')) {
      expect(fish).toContain(`-a ${name} -d`);
      expect(zsh).toContain(`"gpd ${name}")`);
    }
  });
});
