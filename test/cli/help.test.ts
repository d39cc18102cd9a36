import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { createProgram } from '../../src/cli/gpd.ts';
import { runGpd } from '../support/command.ts';

/** Help texts: each example can be typed, and a refusal names the invalid word. */

const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();

/** Splits a line as a shell does, without redirections. */
function wordsOf(line: string): string[] {
  const [typed = ''] = line.split(/ [<>|] /);
  return [...typed.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}

const program = await createProgram();
/** Lists a command and all commands below it. */
const all = (command: Command): Command[] => [command, ...command.commands.flatMap(all)];
const acting = all(program).filter((command) => 'gpd' !== pathOf(command) && doesSomething(command));

function doesSomething(command: Command): boolean {
  return (command as Command & { _actionHandler: unknown })._actionHandler !== null;
}

describe('every command', () => {
  it('is one of at least seventy', () => {
    expect(acting.length).toBeGreaterThan(70);
    const idle = all(program).filter((command) => !doesSomething(command) && command.commands.length === 0);
    expect(idle).toEqual([]);
  });

  it.each(acting.map((command) => [pathOf(command)]))('%s shows an example that parses', async (path) => {
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

describe('a refusal names the word that is wrong', () => {
  it.each([
    [['init', '--tenent', 'x'], "gpd: unknown option '--tenent' (Did you mean --tenant?); `gpd init --help`"],
    [['init'], "gpd: required option '--tenant <kid>' not specified; `gpd init --help`"],
    [['kyes', 'list'], "gpd: unknown command 'kyes' (Did you mean keys?); `gpd --help`"],
    [['keys', 'rotat'], "gpd: unknown command 'rotat' (Did you mean rotate?); `gpd keys --help`"],
    [
      ['keys', 'rotate', '--grac', '1d'],
      "gpd: unknown option '--grac' (Did you mean --grace?); `gpd keys rotate --help`",
    ],
    [['keys', 'rotate', '--grace', '1w'], 'gpd: --grace 1w: must be a duration'],
    [['consent', 'grant', 's', 'p', 'q', '--policy-version', 'x'], 'gpd: --policy-version x: must be'],
    [['audit', 's', '--since', 'soon'], 'gpd: --since soon: must be a date'],
    [['keys', 'rotate', 'a b'], 'gpd: tenant "a b": '],
  ])('%j', async (args, message) => {
    const ran = await runGpd(args);
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr.slice(0, message.length)).toBe(message);
    expect(ran.stderr.trim()).not.toContain('\n');
  });

  it('a port that is none, as the option that was typed', async () => {
    const ran = await runGpd(['demo', '--port', '99999']);
    expect(ran.code).toBe(78);
    expect(ran.stderr).toMatch(/^gpd: --port 99999: /);
  });
});
