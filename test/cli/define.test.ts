import { readdirSync } from 'node:fs';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import type { Actions } from '../../src/cli/define.ts';
import { makeProgram } from '../../src/cli/gpd.ts';

/** views/help.en.txt and the actions of src/cli/commands belong together. */

const COMMANDS = new URL('../../src/cli/commands/', import.meta.url);

const leavesOf = (command: Command, path: string): string[] => [
  ...(command.options.some(({ long }) => long === '--json') ? [path] : []),
  ...command.commands.flatMap((child) => leavesOf(child, `${path} ${child.name()}`.trim())),
];

describe('the words and the actions of commands', () => {
  it('every command in help does something, or has commands below it', async () => {
    const idle = (command: Command): string[] =>
      command.commands.length === 0 && !command.options.some(({ long }) => long === '--json')
        ? [command.name()]
        : command.commands.flatMap(idle);
    expect(idle(await makeProgram([]))).toEqual([]);
  });

  it('every action has its line in help', async () => {
    const leaves = (await makeProgram([])).commands.flatMap((child) => leavesOf(child, child.name()));
    const wanted: string[] = [];
    for (const file of readdirSync(COMMANDS)) {
      const { ACTIONS } = (await import(new URL(file, COMMANDS).href)) as { ACTIONS?: Actions };
      const name = file.replace('.ts', '');
      wanted.push(...Object.keys(ACTIONS ?? {}).map((words) => `${name} ${words}`.trim()));
    }
    expect(leaves.sort()).toEqual(wanted.sort());
  });

  it('an option that has to be there is asked for, and one that may be repeated begins empty', async () => {
    const program = await makeProgram(['init']);
    const [init] = program.commands;
    const of = (long: string) => init?.options.find((option) => option.long === long);
    expect(of('--tenant')?.mandatory).toBe(true);
    expect(of('--origin')).toMatchObject({ mandatory: false, defaultValue: [] });
  });
});
