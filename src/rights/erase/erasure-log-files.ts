import { existsSync, readFileSync } from 'node:fs';
import { listAudit } from '../../audit/store.ts';
import { type Config, ConfigError } from '../../config.ts';
import type { Database } from '../../db/db.ts';
import { AUDIT_DAYS_MS } from '../../log/fold.ts';
import { tenantsSince } from '../../tenants/tenant-store.ts';
import { completeLines, type ErasureLog, type HoldLine, type Tombstone } from './erasure-chain-service.ts';
import { knownReceipts } from './receipts-store.ts';
import { tombstoneFile } from './tombstone-files.ts';

/** DATA_DIR/erasures.log as backup, restore and doctor handle it: whole lines, none lost, none passed over. */

export function readErasureLines(config: Pick<Config, 'data_dir'>): readonly string[] {
  const path = tombstoneFile(config.data_dir);
  return existsSync(path) ? completeLines(readFileSync(path, 'utf8')) : [];
}

/** @throws {ConfigError} an erasure that cannot be read, or is missing, cannot be repeated */
export function requireWhole({ problem }: ErasureLog, where: string): void {
  if (problem === null) return;
  throw new ConfigError(
    `${where}: ${problem}: an erasure that it told of could not be repeated; put the file back from a copy`,
  );
}

const isOffboarding = ({ refs }: Tombstone): boolean => refs.some(({ kind }) => kind === 'tenant');

/** How many erasures the next start will repeat on this database, by the rules of `rights/reapply.ts`. */
export async function countUndone(database: Database, tombstones: readonly Tombstone[]): Promise<number> {
  const since = await tenantsSince(database);
  // Lines about a tenant that was removed, or created again after its offboarding, are done.
  const buried = tombstones.filter(isOffboarding).filter(({ tenant, at }) => {
    return (since.get(tenant) ?? Number.POSITIVE_INFINITY) <= Date.parse(at);
  });
  const people = tombstones.filter((line) => !isOffboarding(line) && since.has(line.tenant));
  const ids = [...new Set(people.map(({ receiptId }) => receiptId))];
  return buried.length + ids.length - (await knownReceipts(database, ids)).size;
}

/** Of which the database's audit log tells nothing, although it still would: the database is older than they are. */
export async function lostHolds(database: Database, holds: readonly HoldLine[], now: number) {
  const lost: HoldLine[] = [];
  for (const line of holds) {
    const { tenant: kid, device: object, event: action } = line;
    const at = Date.parse(line.at);
    if (at < now - AUDIT_DAYS_MS) continue;
    if ((await listAudit(database, kid, { action, object, from: at }, 1)).length === 0) lost.push(line);
  }
  return lost;
}
