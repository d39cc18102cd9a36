import { statSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { listAudit } from '../../audit/store.ts';
import { type Config, ConfigError } from '../../config.ts';
import { type ChainedLog, makeChainedLog } from '../../db/chained-log-files.ts';
import type { Database } from '../../db/db.ts';
import { readOwnFile } from '../../db/durable-files.ts';
import { isoTime } from '../../lib/clock.ts';
import { AUDIT_DAYS_MS } from '../../log/fold.ts';
import { ofPresentTenants, tenantsSince } from '../../tenants/tenant-store.ts';
import {
  afterBody,
  checkLines,
  completeLines,
  ERASURES,
  type ErasureLog,
  erasureLogKey,
  type HoldLine,
  type LogHead,
  NO_HEAD,
  nameOfEnded,
  type OutsideLine,
  type Tombstone,
} from './erasure-chain-service.ts';
import { endedLines, readLogHead, saveLogHead } from './erasure-head-store.ts';
import { knownReceipts, type StoredErasure } from './receipts.ts';

/**
 * What a restored database must not undo, outside of it: one line of JSON each in DATA_DIR/erasures.log, chained, with a MAC,
 * synced. The start applies them again. They hold keyed references and name nobody.
 */

export function tombstoneFile(dataDir: string): string {
  return join(dataDir, 'erasures.log');
}

/** Where the lines go, and what keeps count of them. */
export interface OutsideLog {
  readonly database: Database;
  readonly dataDir: string;
  /** Of the log of erasures. */
  readonly logKey: Uint8Array;
}

interface Open {
  inode: number;
  readonly log: ChainedLog;
  head: LogHead;
  /** Names of its lines about keys and holds. */
  readonly ended: Set<string>;
}

/** A long file is read once; one that a restore replaced, again. */
const opened = new Map<string, Open>();

function openLog({ dataDir, logKey: key }: OutsideLog): Open {
  const path = tombstoneFile(dataDir);
  const inode = statSync(path, { throwIfNoEntry: false })?.ino ?? 0;
  const known = opened.get(path);
  if (known?.inode === inode && inode !== 0) return known;
  const onLine = (body: unknown): void => {
    open.head = afterBody(open.head, JSON.stringify(body));
    const name = nameOfEnded(body as OutsideLine);
    if (name !== null) open.ended.add(name);
  };
  const log = makeChainedLog({ path, key, name: ERASURES, mayBeginBare: true, onLine });
  const open: Open = { inode, log, head: NO_HEAD, ended: new Set() };
  return open;
}

/**
 * Durable before it returns. Written twice is no harm: a line is applied once.
 * @param next is handed the names of all lines about keys and holds; null: nothing is missing
 */
async function appendNext(
  outside: OutsideLog,
  next: (ended: ReadonlySet<string>) => OutsideLine | null,
): Promise<boolean> {
  const { dataDir, database, logKey } = outside;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const open = openLog(outside);
  let line: OutsideLine | null = null;
  await open.log.append(() => {
    line = next(open.ended);
    return line;
  });
  const path = tombstoneFile(dataDir);
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat) {
    open.inode = stat.ino;
    opened.set(path, open);
  }
  if (line !== null) await saveLogHead(database, logKey, open.head);
  return line !== null;
}

async function appendLine(outside: OutsideLog, line: OutsideLine): Promise<void> {
  await appendNext(outside, () => line);
}

/** Writes what ended in the database and has no line yet: after each such change, and in each sweep for one that failed. */
export async function recordEnded(outside: OutsideLog, kid: string, now: number): Promise<void> {
  const lines = await endedLines(outside.database, kid, now);
  if (lines.length === 0) return;
  const next = (ended: ReadonlySet<string>): OutsideLine | null =>
    lines.find((line) => !ended.has(nameOfEnded(line) ?? '')) ?? null;
  while (await appendNext(outside, next));
}

export function appendTombstone(outside: OutsideLog, erasure: StoredErasure): Promise<void> {
  const { receiptId, kid: tenant, subject, requestedBy, erasedAt, keep, refs } = erasure;
  const at = isoTime(erasedAt);
  return appendLine(outside, { v: 1, receiptId, tenant, subject, requestedBy, at, keep, refs: [...refs] });
}

/** A tenant that was offboarded: an older backup would bring it back. */
export function buryTenant(outside: OutsideLog, kid: string, now: number): Promise<void> {
  return appendLine(outside, {
    v: 1,
    receiptId: `off_${kid}_${now}`,
    tenant: kid,
    subject: kid,
    requestedBy: 'operator',
    at: isoTime(now),
    keep: { openContests: false, override: false },
    refs: [{ kind: 'tenant', ref: kid }],
  });
}

/** All that can be read, with what is wrong: who was promised to be gone must not come back for a line that is damaged. */
export async function readOutsideLog({ database, dataDir, logKey }: OutsideLog): Promise<ErasureLog> {
  const config = { data_dir: dataDir };
  // Read again after the count: a server appends meanwhile.
  const kept = await readLogHead(database, logKey, readErasureLines(config));
  return checkLines(readErasureLines(config), logKey, kept);
}

export const outsideOf = (
  { database, serverSecret }: { readonly database: Database; readonly serverSecret: Uint8Array },
  { data_dir }: { readonly data_dir: string },
): OutsideLog => ({ database, dataDir: data_dir, logKey: erasureLogKey(serverSecret) });

/** DATA_DIR/erasures.log as backup, restore and doctor handle it: whole lines, none lost, none passed over. */

export function readErasureLines({ data_dir }: Pick<Config, 'data_dir'>): readonly string[] {
  return completeLines(readOwnFile(tombstoneFile(data_dir)) ?? '');
}

/** @throws {ConfigError} an erasure that cannot be read, or is missing, cannot be repeated */
export function requireWhole({ problem }: ErasureLog, where: string): void {
  if (problem === null) return;
  throw new ConfigError(
    `${where}: ${problem}: an erasure that it told of could not be repeated; put the file back from a copy`,
  );
}

export const isOffboarding = ({ refs }: Tombstone): boolean => refs.some(({ kind }) => kind === 'tenant');

/** Erasures of people that the database does not know, each once. */
export async function lostErasures(database: Database, tombstones: readonly Tombstone[]) {
  const people = await ofPresentTenants(
    database,
    tombstones.filter((line) => !isOffboarding(line)),
  );
  const lines = new Map(people.map((line) => [line.receiptId, line]));
  for (const id of await knownReceipts(database, [...lines.keys()])) lines.delete(id);
  return [...lines.values()];
}

/** How many erasures the next start will repeat on this database. */
export async function countUndone(database: Database, tombstones: readonly Tombstone[]): Promise<number> {
  const since = await tenantsSince(database);
  const buried = tombstones.filter(isOffboarding).filter(({ tenant, at }) => {
    return (since.get(tenant) ?? Number.POSITIVE_INFINITY) <= Date.parse(at);
  });
  return buried.length + (await lostErasures(database, tombstones)).length;
}

/** Of which the database's audit log tells nothing, although it still would: the database is older than they are. */
export async function lostHolds(database: Database, holds: readonly HoldLine[], now: number) {
  const lost: HoldLine[] = [];
  for (const line of await ofPresentTenants(database, holds)) {
    const { tenant: kid, device: object, event: action } = line;
    const at = Date.parse(line.at);
    if (at < now - AUDIT_DAYS_MS) continue;
    if ((await listAudit(database, kid, { action, object, from: at }, 1)).length === 0) lost.push(line);
  }
  return lost;
}
