import type { Command, Option } from 'commander';
import { EXIT } from '../../src/cli/output.ts';
import { NOTES } from './notes.ts';
import { bold, type Entry, entries, example, italic, page, paragraphs, prose, type Section } from './roff.ts';

/** gpd(1) and a page for each command, from the commands that there are. */

const EXIT_WORDS: Readonly<Record<keyof typeof EXIT, string>> = {
  ok: 'Done.',
  failure: 'It failed, or what it looked at is not in order.',
  usage: 'It was called wrongly.',
  notFound: 'What it was to work on is not there.',
  notAllowed: 'It is not allowed.',
  incomplete: 'Something is left to do, which a later run finishes.',
  conflict: 'Something stands against it; nothing was changed.',
  tryAgain: 'The database is busy or away: try again.',
  badConfig: 'The configuration is wrong.',
};

/** Every command has them. */
const COMMON = new Set(['--json', '--config', '--help', '--version']);

const COMMON_ENTRIES: readonly Entry[] = [
  { term: bold('--json'), text: 'One JSON value on standard output; messages go to standard error.' },
  {
    term: `${bold('--config')} ${italic('file')}`,
    text: 'The configuration file. Default: `gpd.toml` in the working directory, if there is one.',
  },
  { term: `${bold('-h')}, ${bold('--help')}`, text: 'What the command takes.' },
];

const isHidden = (command: Command): boolean => (command as { _hidden?: boolean })._hidden === true;

function shownCommands(command: Command): Command[] {
  return command.commands.filter((child) => !isHidden(child));
}

const ownOptions = (command: Command): Option[] =>
  command.options.filter(({ long }) => long === null || long === undefined || !COMMON.has(long));

/** `--grace <duration>` with its placeholder in italics. */
function optionTerm({ flags }: Option): string {
  return flags.replace(/<([^>]+)>|\[([^\]]+)\]|[^<[]+/g, (part, wanted?: string, possible?: string) => {
    const name = wanted ?? possible;
    return name === undefined ? bold(part.trimEnd()) + (part.endsWith(' ') ? ' ' : '') : italic(name);
  });
}

function optionEntry(option: Option): Entry {
  const { description } = option;
  const value: unknown = option.defaultValue;
  const text = typeof value === 'string' ? `${description}. Default: \`${value}\`.` : `${description}.`;
  return { term: optionTerm(option), text: capital(text) };
}

function synopsis(command: Command, path: string): string {
  const args = command.registeredArguments.map((argument) => {
    const name = `${italic(argument.name())}${argument.variadic ? '\\.\\.\\.' : ''}`;
    return argument.required ? name : `[${name}]`;
  });
  const options = ownOptions(command).length > 0 ? ['[options]'] : [];
  return [bold(path), ...options, ...args].join(' ');
}

/** The command itself where it does something, and whatever is below it. */
function* actions(command: Command, path: string): Generator<readonly [Command, string]> {
  const children = shownCommands(command);
  if (children.length === 0 || ownOptions(command).length > 0) yield [command, path];
  for (const child of children) yield* actions(child, `${path} ${child.name()}`);
}

const sentence = (text: string): string => (/[.?!]$/.test(text) ? text : `${text}.`);
const capital = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

function subcommands(command: Command, path: string): string[] {
  return [...actions(command, path)]
    .filter(([child]) => child !== command)
    .flatMap(([child, childPath]) => [
      `.SS ${synopsis(child, childPath)}`,
      prose(sentence(capital(child.description()))),
      ...entries(ownOptions(child).map(optionEntry)),
    ]);
}

function exitStatus(): string[] {
  return entries(
    Object.entries(EXIT).map(([name, code]) => ({
      term: bold(String(code)),
      text: EXIT_WORDS[name as keyof typeof EXIT],
    })),
  );
}

function lines(list: readonly string[], separator: string): string[] {
  return list.map((line, i) => `${line}${i === list.length - 1 ? '' : separator}`);
}

const pageName = (name: string): string => `gpd-${name}`;
const reference = (name: string, section = 1): string => `${bold(name)}(${section})`;

function seeAlso(names: readonly string[]): Section {
  const all = ['gpd', ...names.map(pageName)].map((name) => reference(name));
  return { title: 'SEE ALSO', lines: lines([...all, reference('gpd.toml', 5)], ',') };
}

function commandPage(command: Command, version: string): string {
  const name = command.name();
  const note = NOTES[name];
  const path = `gpd ${name}`;
  const about = command.description();
  const all = [...actions(command, path)];
  return page({ name: pageName(name), section: 1, about, version }, [
    { title: 'SYNOPSIS', lines: all.flatMap(([c, p], i) => [...(i === 0 ? [] : ['.br']), synopsis(c, p)]) },
    { title: 'DESCRIPTION', lines: paragraphs([sentence(capital(about)), ...(note ? [note.text] : [])]) },
    { title: 'COMMANDS', lines: subcommands(command, path) },
    { title: 'OPTIONS', lines: entries([...ownOptions(command).map(optionEntry), ...COMMON_ENTRIES]) },
    { title: 'EXIT STATUS', lines: exitStatus() },
    { title: 'EXAMPLES', lines: example(note?.examples ?? []) },
    seeAlso(note?.see ?? []),
  ]);
}

const ABOUT = [
  'gpd recognises devices and tells people from automation, on your own machine and only with consent. One program is the server, its tools and its upkeep: `gpd init` makes an installation, `gpd serve` runs it, every other command works on the data of both while the server runs; it sees a change within five seconds.',
  'Standard output is data, standard error is messages. Nothing asks without a terminal: what destroys takes `--dry-run` to look first and `--yes` to go on. Colour is left out when `NO_COLOR` is set.',
  'Run it as the user that owns the data directory: a file that root made, the server cannot write. The Debian package does that by itself.',
];

const FILES: readonly Entry[] = [
  { term: italic('gpd.toml'), text: 'The settings; /etc/gpd/gpd.toml in the unit and the Debian package.' },
  {
    term: italic('gpd-data'),
    text: 'The data directory; /var/lib/gpd in the unit and the Debian package. It holds `gpd.db`, `master.key` (without which nothing opens), `erasures.log` (what a restored backup has to forget again) and `gpd.lock` (empty; keeps a restore off a running server).',
  },
];

function mainPage(program: Command, version: string): string {
  const commands = shownCommands(program);
  return page(
    { name: 'gpd', section: 1, about: 'device identification with consent that can be proven', version },
    [
      { title: 'SYNOPSIS', lines: [`${bold('gpd')} [options] ${italic('command')} [arguments]`] },
      { title: 'DESCRIPTION', lines: paragraphs(ABOUT) },
      {
        title: 'COMMANDS',
        lines: entries(
          commands.map((command) => ({
            term: reference(pageName(command.name())),
            text: sentence(capital(command.description())),
          })),
        ),
      },
      {
        title: 'OPTIONS',
        lines: entries([
          ...COMMON_ENTRIES,
          { term: `${bold('-V')}, ${bold('--version')}`, text: 'The version.' },
        ]),
      },
      { title: 'EXIT STATUS', lines: exitStatus() },
      {
        title: 'ENVIRONMENT',
        lines: paragraphs(['Each setting has a name that begins with `GPD_`; gpd.toml(5) lists them.']),
      },
      { title: 'FILES', lines: entries(FILES) },
      seeAlso(['init', 'serve', 'doctor']),
    ],
  );
}

/** By file name. */
export function commandPages(program: Command, version: string): Readonly<Record<string, string>> {
  const pages = shownCommands(program).map((command): [string, string] => [
    `${pageName(command.name())}.1`,
    commandPage(command, version),
  ]);
  return Object.fromEntries<string>([['gpd.1', mainPage(program, version)], ...pages]);
}
