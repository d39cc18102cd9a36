import { io } from './io.ts';
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

export function say(message: string): void {
  io().stderr.write(`${message}\n`);
}

export function printLine(text: string): void {
  io().stdout.write(`${text}\n`);
}

/** One JSON value for `--json`, else the lines for a person. */
export function print(json: boolean, value: unknown, lines: () => readonly string[]): void {
  if (json) printLine(JSON.stringify(value));
  else for (const line of lines()) printLine(line);
}

/** Aligned columns, no box art. */
export function table(rows: readonly (readonly string[])[]): string[] {
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
