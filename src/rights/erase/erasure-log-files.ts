import { existsSync, readFileSync } from 'node:fs';
import { type Config, ConfigError } from '../../config.ts';
import type { Database } from '../../db/db.ts';
import { tenantsSince } from '../../tenants/tenant-store.ts';
import { knownReceipts } from './receipts-store.ts';
import { parseTombstone, type Tombstone, tombstoneFile } from './tombstone-files.ts';

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

const isOffboarding = ({ refs }: Tombstone): boolean => refs.some(({ kind }) => kind === 'tenant');

/** How many erasures the next start will repeat on this database, by the rules of `rights/reapply.ts`. */
export async function countUndone(database: Database, tombstones: readonly Tombstone[]): Promise<number> {
  const since = await tenantsSince(database);
  // What is said of a tenant that is gone, or was made anew after its offboarding, is done.
  const buried = tombstones.filter(isOffboarding).filter(({ tenant, at }) => {
    return (since.get(tenant) ?? Number.POSITIVE_INFINITY) <= Date.parse(at);
  });
  const people = tombstones.filter((line) => !isOffboarding(line) && since.has(line.tenant));
  const ids = [...new Set(people.map(({ receiptId }) => receiptId))];
  // A database from before there were receipts has done none.
  const receipts = await database.read.schema.hasTable('erasures');
  const known = receipts ? await knownReceipts(database, ids) : new Set<string>();
  return buried.length + ids.length - known.size;
}
