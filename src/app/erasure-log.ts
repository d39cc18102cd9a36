import { existsSync, readFileSync } from 'node:fs';
import { type Config, ConfigError } from '../config.ts';
import type { Database } from '../storage/db.ts';
import { knownReceipts } from '../storage/erasure-receipts.ts';
import { parseTombstone, type Tombstone, tombstoneFile } from './rights/tombstones.ts';

/** DATA_DIR/erasures.log as backup, restore and doctor handle it: whole lines, none lost, none passed over. */

/** What a crash cut off in the middle of a line was never answered to anybody. */
export function completeLines(text: string): string[] {
  return text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line.trim() !== '');
}

export function readErasureLines(config: Config): readonly string[] {
  const path = tombstoneFile(config.data_dir);
  return existsSync(path) ? completeLines(readFileSync(path, 'utf8')) : [];
}

/** All lines of both, each once, in the order of this directory's log. */
export function mergeErasures(ours: readonly string[], carried: readonly string[]): string[] {
  return [...new Set([...ours, ...carried])];
}

/** @throws {ConfigError} an erasure that cannot be read cannot be repeated */
export function parseErasures(lines: readonly string[], where: string): Tombstone[] {
  return lines.map((line, i) => {
    try {
      return parseTombstone(line);
    } catch {
      throw new ConfigError(
        `${where}: line ${i + 1} is damaged, and the erasure that it tells of could not be repeated: put the file back from a copy`,
      );
    }
  });
}

/** How many erasures a database has not done: a start repeats those whose receipt it does not have. */
export async function countUndone(database: Database, tombstones: readonly Tombstone[]): Promise<number> {
  const ids = [...new Set(tombstones.map(({ receiptId }) => receiptId))];
  // A database from before there were receipts has done none.
  if (!(await database.read.schema.hasTable('erasures'))) return ids.length;
  return ids.length - (await knownReceipts(database, ids)).size;
}
