import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';

/**
 * A release as it left its databases: rows that the real program wrote, the master key that opens them, and the migrations that
 * made its schema. One line a row, after a line about the release. Frozen: the file of a release never changes.
 */

export type Row = Readonly<Record<string, unknown>>;

export interface Head {
  readonly release: string;
  /** When the rows were written. */
  readonly at: number;
  /** By the file's name: the SHA-256 of its text. */
  readonly migrations: Readonly<Record<string, string>>;
  /** Base64. */
  readonly masterKey: string;
  readonly kids: readonly string[];
  /** A device that was there, and its visitorId. */
  readonly known: { readonly device: string; readonly visitorId: string };
}

export interface Rung extends Head {
  readonly rows: ReadonlyMap<string, readonly Row[]>;
}

const RUNGS = new URL('../rungs/', import.meta.url);
export const MIGRATIONS = new URL('../../../migrations/', import.meta.url);

export function rungFile(release: string): URL {
  return new URL(`${release}.ndjson`, RUNGS);
}

export function hashOf(migration: string): string {
  return createHash('sha256')
    .update(readFileSync(new URL(migration, MIGRATIONS)))
    .digest('hex');
}

function readRung(file: string): Rung {
  const [head = '', ...lines] = readFileSync(new URL(file, RUNGS), 'utf8').trimEnd().split('\n');
  const rows = new Map<string, Row[]>();
  for (const line of lines) {
    const [table, row] = JSON.parse(line) as [string, Row];
    rows.set(table, [...(rows.get(table) ?? []), row]);
  }
  return { ...(JSON.parse(head) as Head), rows };
}

export const readRungs = (): readonly Rung[] => readdirSync(RUNGS).sort().map(readRung);
