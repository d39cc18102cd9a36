import { AsyncLocalStorage } from 'node:async_hooks';
import type { Readable } from 'node:stream';

/**
 * Environment and streams of a command: those of the process, or those that a test gives to `run`. Prints
 * tables and JSON.
 */

type OutputStream = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** Set by the command, one of EXIT. */
  exitCode: number;
  /** Options that every command takes. */
  globalOptions: { readonly config?: string; readonly json?: boolean };
  /**
   * Ends the process at once, unless it is a test's: a server that failed half-way has timers that would keep
   * it running.
   */
  leave(): void;
}

const commandIo = new AsyncLocalStorage<Io>();
const { env, stdout, stderr } = process;
const processIo: Io = {
  env,
  stdout,
  stderr,
  // A getter, because reading process.stdin opens it, and an open stdin can keep a process alive.
  get stdin() {
    return process.stdin;
  },
  exitCode: 0,
  globalOptions: {},
  leave: () => process.exit(processIo.exitCode),
};

export function io(): Io {
  return commandIo.getStore() ?? processIo;
}

/**
 * Runs `work` with these streams; two commands in one process each see their own. The process's own need no
 * storage, which would slow down each promise of a server by Node's async hooks.
 */
export function withIo<T>(streams: Io, work: () => Promise<T>): Promise<T> {
  return streams === processIo ? work() : commandIo.run(streams, work);
}

/** True where a prompt can be shown and answered. */
function isInteractive(): boolean {
  const { stdin, stderr: messages } = io();
  return stdin.isTTY === true && messages.isTTY === true;
}

/** Exit codes (contract section 9). */
export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  notFound: 3,
  notAllowed: 4,
  incomplete: 5,
  conflict: 7,
  tryAgain: 75,
  badConfig: 78,
} as const;

export type ExitName = keyof typeof EXIT;

/** Ends a command with a sentence that says what to do next. */
export class CommandFailed extends Error {
  readonly exit: ExitName;

  constructor(exit: ExitName, message: string) {
    super(message);
    this.name = 'CommandFailed';
    this.exit = exit;
  }
}

/** The command line itself is wrong: exit code `usage`. */
export const misused = (message: string): CommandFailed => new CommandFailed('usage', message);
export const notFound = (message: string): CommandFailed => new CommandFailed('notFound', message);
export const conflict = (message: string): CommandFailed => new CommandFailed('conflict', message);
export const failed = (message: string): CommandFailed => new CommandFailed('failure', message);

/**
 * Replaces control and format characters: some of what gpd prints was written by strangers, and may not steer
 * a terminal.
 */
export function printable(text: string): string {
  return text.replace(/(?!\n)[\p{Cc}\p{Cf}\u2028\u2029]/gu, '\u{fffd}');
}

const codeUnits = (text: string): string =>
  text.replace(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Escapes the characters that JSON allows and that steer a terminal; the value stays the same. */
export function printableJson(json: string): string {
  return json.replace(/[\u007f-\u009f\p{Cf}\u2028\u2029]/gu, codeUnits);
}

/**
 * Breaks a line between words, and never within one: a command or an address stays whole.
 * @param indent spaces before each further line
 */
export function wrapWords(text: string, columns: number, indent: number): string[] {
  const lines: string[] = [];
  let rest = text;
  while (rest.length > columns) {
    const breakAt = rest.lastIndexOf(' ', columns);
    const start = rest.search(/\S/);
    const at = breakAt > start ? breakAt : rest.indexOf(' ', Math.max(columns, start));
    if (at === -1) break;
    lines.push(rest.slice(0, at).trimEnd());
    rest = ' '.repeat(indent) + rest.slice(at).trimStart();
  }
  return [...lines, rest];
}

/** A pipe gets whole lines: programs search them. */
const linesFor = (text: string, { isTTY, columns = 80 }: OutputStream, indent: number): string[] =>
  isTTY === true ? text.split('\n').flatMap((line) => wrapWords(line, columns, indent)) : [text];

/** Columns of `gpd: `, which begins most messages. */
const MESSAGE_INDENT = 5;

export function say(message: string): void {
  const { stderr: messages } = io();
  messages.write(`${linesFor(printable(message), messages, MESSAGE_INDENT).join('\n')}\n`);
}

/** Prints the message on stderr and sets the exit code. */
export function endWith({ exit, message }: CommandFailed): void {
  say(`gpd: ${message}`);
  io().exitCode = EXIT[exit];
}

export function printLine(text: string): void {
  io().stdout.write(`${printable(text)}\n`);
}

/** SGR codes; a colour repeats what its word says, so that nothing is lost without it. */
const COLOURS = { red: 31, yellow: 33, green: 32, grey: 90 } as const;
export type Colour = keyof typeof COLOURS;

/** https://no-color.org: any value but an empty one turns colours off. */
const hasColours = ({ stdout: output, env: variables }: Io): boolean =>
  output.isTTY === true && !variables['NO_COLOR'] && variables['TERM'] !== 'dumb';

/**
 * Prints a line that is broken between words at the width of a terminal.
 * @param indent spaces before each further line
 * @param colour of the first word
 */
export function printWrapped(text: string, indent: number, colour?: Colour): void {
  const current = io();
  const lines = linesFor(printable(text), current.stdout, indent).join('\n');
  const painted =
    colour !== undefined && hasColours(current)
      ? lines.replace(/^\S+/, (word) => `\u001b[${COLOURS[colour]}m${word}\u001b[39m`)
      : lines;
  current.stdout.write(`${painted}\n`);
}

export function wantsJson(): boolean {
  return io().globalOptions.json === true;
}

/** One JSON value for `--json`, else the lines for a person. */
export function print(value: unknown, lines: () => readonly string[]): void {
  if (wantsJson()) printLine(printableJson(JSON.stringify(value)));
  else for (const line of lines()) printLine(line);
}

/** The property of a row, or a function of the row, by heading. */
export type TableColumns<Row> = Readonly<Record<string, keyof Row | ((row: Row) => string | number)>>;

/** @returns the lines of a table with its headings */
export function tableLines<Row>(rows: readonly Row[], columns: TableColumns<Row>): string[] {
  const cells = Object.values(columns);
  const textOf = (row: Row) => (cell: (typeof cells)[number]) =>
    String(typeof cell === 'function' ? cell(row) : (row[cell] ?? ''));
  return alignColumns([Object.keys(columns), ...rows.map((row) => cells.map(textOf(row)))]);
}

/**
 * Prints a table, or `emptyText` where it has no rows.
 * @param value for `--json`, where that is not the rows
 */
export function printTable<Row>(
  rows: readonly Row[],
  emptyText: string,
  columns: TableColumns<Row>,
  value: unknown = rows,
): void {
  print(value, () => (rows.length === 0 ? [emptyText] : tableLines(rows, columns)));
}

/** Pads each cell to the width of its column, so that the lines form a table. */
export function alignColumns(texts: readonly (readonly string[])[]): string[] {
  const rows = texts.map((cells) => cells.map((cell) => printable(cell).replaceAll('\n', '\u{fffd}')));
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, cell.length);
    });
  }
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** The options of a command that destroys something. */
export interface DestructiveFlags {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
}

/** Asks on a terminal. A script is not asked: nothing may delay the revocation of a leaked key. */
export async function confirmOnTerminal(options: DestructiveFlags, consequence: string): Promise<void> {
  if (isInteractive()) await confirm(options, consequence);
}

/**
 * Asks on a terminal; without one the command needs --yes. --dry-run asks nothing.
 * @param consequence begins the question
 */
export async function confirm(options: DestructiveFlags, consequence: string): Promise<void> {
  if (options.yes === true || options.dryRun === true) return;
  if (!isInteractive()) throw misused(`${consequence}: repeat with --yes, or check first with --dry-run`);
  const { createInterface } = await import('node:readline/promises');
  const prompt = createInterface({ input: io().stdin, output: io().stderr });
  const answer = await prompt.question(`${printable(consequence)}. Type yes to continue: `);
  prompt.close();
  if (answer.trim() !== 'yes') throw failed('nothing was changed');
}
