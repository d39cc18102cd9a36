import { AsyncLocalStorage } from 'node:async_hooks';
import type { Readable } from 'node:stream';

/** What a command reads and writes: the process's own, or what `run` was given. */

type Written = NodeJS.WritableStream & { readonly isTTY?: boolean };

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Written;
  readonly stderr: Written;
  /** What the command ends with (contract section 9). */
  exitCode: number;
  /** What every command takes, as this one was given it. */
  asked: { readonly config?: string; readonly json?: boolean };
  /** Ends the process at once, where it is the command's own: a server that failed half-way has timers that would keep it. */
  leave(): void;
}

const given = new AsyncLocalStorage<Io>();
const { env, stdout, stderr } = process;
const own: Io = {
  env,
  stdout,
  stderr,
  // Made when it is first asked for: an open stdin may keep a process.
  get stdin() {
    return process.stdin;
  },
  exitCode: 0,
  asked: {},
  leave: () => process.exit(own.exitCode),
};

export function io(): Io {
  return given.getStore() ?? own;
}

/**
 * Two commands at one time in one process do not meet. The process's own streams need no storage, which would slow down
 * each promise of a server by Node's async hooks.
 */
export function withIo<T>(streams: Io, work: () => Promise<T>): Promise<T> {
  return streams === own ? work() : given.run(streams, work);
}

/** Both ends of a prompt. */
export function onTerminal(): boolean {
  const { stdin, stderr: messages } = io();
  return stdin.isTTY === true && messages.isTTY === true;
}

/** stdout is data, stderr is messages (contract section 9). */

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

/** Asked for in a way that cannot be done. */
export const misused = (message: string): CommandFailed => new CommandFailed('usage', message);
export const notFound = (message: string): CommandFailed => new CommandFailed('notFound', message);
export const conflict = (message: string): CommandFailed => new CommandFailed('conflict', message);
export const failed = (message: string): CommandFailed => new CommandFailed('failure', message);

/** Others wrote some of what is shown: nothing in it may steer a terminal. */
export function printable(text: string): string {
  return text.replace(/(?!\n)[\p{Cc}\p{Cf}\u2028\u2029]/gu, '\u{fffd}');
}

const codeUnits = (text: string): string =>
  text.replace(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** The same value, escaped where JSON would allow what steers a terminal. */
export function printableJson(json: string): string {
  return json.replace(/[\u007f-\u009f\p{Cf}\u2028\u2029]/gu, codeUnits);
}

export function say(message: string): void {
  io().stderr.write(`${printable(message)}\n`);
}

/** The last words of a command that failed. */
export function endWith({ exit, message }: CommandFailed): void {
  say(`gpd: ${message}`);
  io().exitCode = EXIT[exit];
}

export function printLine(text: string): void {
  io().stdout.write(`${printable(text)}\n`);
}

export function wantsJson(): boolean {
  return io().asked.json === true;
}

/** One JSON value for `--json`, else the lines for a person. */
export function print(value: unknown, lines: () => readonly string[]): void {
  if (wantsJson()) printLine(printableJson(JSON.stringify(value)));
  else for (const line of lines()) printLine(line);
}

/** One JSON value for `--json`, else a line for each of `rows` under the names of the columns: a property, or made of the row. */
export function printTable<Row>(
  value: unknown,
  rows: readonly Row[],
  columns: Readonly<Record<string, keyof Row | ((row: Row) => string | number)>>,
): void {
  const cells = Object.values(columns);
  const textOf = (row: Row) => (cell: (typeof cells)[number]) =>
    String(typeof cell === 'function' ? cell(row) : (row[cell] ?? ''));
  print(value, () => table([Object.keys(columns), ...rows.map((row) => cells.map(textOf(row)))]));
}

/** Aligned columns, no box art. */
export function table(texts: readonly (readonly string[])[]): string[] {
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
