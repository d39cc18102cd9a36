import { readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { checkKid } from './run.ts';

/** A command is its texts and its action. All texts are in one file, in the order in which help shows them. */

/** `keys rotate <kid>  what it does`, and in the lines below it `  --grace <duration>  what that says`. */
const HELP = readFileSync(new URL('../../views/help.en.txt', import.meta.url), 'utf8');
const ENTRIES = HELP.trim()
  .split(/\n(?! )/)
  .map((entry) => entry.split(/\n? {2}/));

type Action = (...given: never[]) => unknown;

/** The option has to be there; it may come more than once. */
export const REQUIRED = Symbol('required');
export const MANY = Symbol('many');

/** By the name of an option: one of these, or its value where it is left out. */
type Special = Readonly<Record<string, string | symbol>>;

/** By the words behind the first one of a command; `filled` is what its words leave open. */
export type Actions = Readonly<
  Record<string, Action | readonly [act: Action, special: Special, filled?: Readonly<Record<string, string>>]>
>;

const collect = (value: string, previous: readonly string[]): string[] => [...previous, value];

function optionOf(flags: string, text: string, special: Special): Option {
  const option = new Option(flags, text);
  const how = special[option.attributeName()];
  if (how === REQUIRED) option.makeOptionMandatory();
  else if (how === MANY) option.default([]).argParser(collect);
  else if (how !== undefined) option.default(how);
  return option;
}

/** The command of this name with all below it; each that does something takes --json and --config. */
export function define(program: Command, name: string, actions: Actions): void {
  const made = new Map([['', program]]);
  for (const [usage = '', about = '', ...options] of ENTRIES) {
    const [path = '', ...operands] = usage.split(/ (?=[<[])/);
    if (path !== name && !path.startsWith(`${name} `)) continue;
    const found = actions[path.slice(name.length + 1)] ?? [undefined, {}];
    const [act, special, filled = {}] = typeof found === 'function' ? [found, {}] : found;
    const whole = (text = ''): string => text.replace(/\{(\w+)\}/g, (_, word) => filled[word] ?? '');
    const words = path.split(' ');
    const own = [words.pop(), ...operands].join(' ');
    const command = (made.get(words.join(' ')) ?? program).command(own).description(whole(about));
    made.set(path, command);
    for (let i = 0; i < options.length; i += 2)
      command.addOption(optionOf(options[i] ?? '', whole(options[i + 1]), special));
    for (const argument of command.registeredArguments)
      if (argument.required && argument.name() === 'kid') argument.argParser(checkKid);
    if (act)
      command
        .option('--json', 'one JSON value on stdout')
        .option('--config <file>', 'configuration file')
        .action(act as (...given: unknown[]) => void);
  }
}
