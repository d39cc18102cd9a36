import type { Knex } from 'knex';
import { listAudit, writeAudit } from '../../audit/audit-store.ts';
import { raiseForgotten } from '../../db/clock-rule-store.ts';
import type { Database } from '../../db/engine.ts';
import { fileOf, isSameFile, type LogFile, readLines } from '../../db/line-log.ts';
import { serialise } from '../../db/lock-files.ts';
import { bumpTenant, listKids } from '../../db/meta-store.ts';
import { requireNone } from '../../db/sql.ts';
import { DAY, isoTime } from '../../lib/clock.ts';
import { pagesBy } from '../../lib/collections.ts';
import { AUDIT_DAYS_MS } from '../../log/fold.ts';
import { listTenantsInRemoval, readCreationTimes } from '../../tenants/tenant-store.ts';
import {
  appendErasureLine,
  type EndedKey,
  type ErasureLine,
  type ErasureLogAccess,
  erasureLog,
  type FoundLine,
  type HoldLine,
  isHold,
  isRemoval,
  isTombstone,
  nameOf,
  parseLine,
  type Tombstone,
  tombstoneOf,
} from './erasure-log-service.ts';
import { needsLine } from './erasure-service.ts';
import { placeHold, releaseHold } from './hold-store.ts';
import { erasuresOf, knownReceipts, receiptsSince } from './receipts-store.ts';

/**
 * Keys, holds and erasures that must stay ended after a restore. Lines of erasures.log are written from the
 * rows that say so, and applied to a database whose rows do not; an erasure is applied by its service
 * (reapply-service.ts).
 */

/** The rows of a key, which a line ends: where they are, and what ends them. */
interface KeyRows {
  readonly table: string;
  /** The column that names the row of a tenant; the line has a field of that name. */
  readonly id: 'id' | 'generation';
  /** The column with the time of the end; null in a row of a key that is valid. */
  readonly endedAt: string;
  /** The values of other columns of a row that has ended. */
  readonly ended: Readonly<Record<string, string | null>>;
  readonly undone: (id: string | number, kid: string) => string;
}

const KEYS: Readonly<Record<EndedKey['event'], KeyRows>> = {
  'seal-key.destroyed': {
    ...{ table: 'seal_keys', id: 'generation', endedAt: 'destroyed_at' },
    ended: { state: 'destroyed', wrapped_private: null },
    undone: (generation, kid) => `generation ${generation} of ${kid} is not destroyed`,
  },
  'apikey.revoked': {
    ...{ table: 'api_keys', id: 'id', endedAt: 'revoked_at', ended: {} },
    undone: (id) => `API key ${id} is not revoked`,
  },
  'staff.removed': {
    ...{ table: 'staff', id: 'id', endedAt: 'removed_at' },
    ended: { invite_hash: null, credential: null, public_key: null },
    undone: (id) => `staff member ${id} is not removed`,
  },
};
const KEY_EVENTS = Object.keys(KEYS) as EndedKey['event'][];

async function keyLines({ read }: Database, kid: string, since: number): Promise<EndedKey[]> {
  const lines: EndedKey[] = [];
  for (const event of KEY_EVENTS) {
    const { table, id, endedAt } = KEYS[event];
    const rows = read(table).where({ kid }).where(endedAt, '>=', since);
    for (const row of (await rows.select({ id, at: endedAt })) as { id: string | number; at: number }[])
      lines.push({ v: 1, at: isoTime(Number(row.at)), tenant: kid, event, [id]: row.id } as EndedKey);
  }
  return lines;
}

const PAGE = 5000;

async function holdLines(database: Database, kid: string, from: number): Promise<HoldLine[]> {
  const lines: HoldLine[] = [];
  for (const event of ['hold.placed', 'hold.released'] as const) {
    const readPage = (last: { readonly seq: number } | undefined) =>
      listAudit(database, kid, { action: event, from, ...(last && { before: last.seq }) }, PAGE);
    for await (const page of pagesBy(PAGE, readPage))
      for (const { at, object, detail } of page) {
        // A restore that found no such device changed no hold.
        if (object === null || detail['found'] === false) continue;
        lines.push({ v: 1, at: isoTime(at), event, tenant: kid, device: object });
      }
  }
  return lines;
}

/** A line that could not be written is written by any server that runs within this time, in milliseconds. */
const REPAIR_MS = 30 * DAY;

/** The names of all that ended, and the lines of keys and holds. The name of an erasure is its receipt. */
async function readEnded(database: Database, since: number) {
  const lines: ErasureLine[] = [];
  const receipts: string[] = [];
  for (const kid of await listKids(database)) {
    lines.push(...(await keyLines(database, kid, since)), ...(await holdLines(database, kid, since)));
    for (const receipt of await receiptsSince(database, kid, since)) receipts.push(receipt);
  }
  return { lines, receipts, names: new Set([...receipts, ...lines.map(nameOf)]) };
}

/**
 * The names that the last sweep found or wrote, by path. A file that another took the place of is read again.
 */
const recorded = new Map<string, { readonly file: LogFile; readonly names: ReadonlySet<string> }>();

async function recordMissingLines(logAccess: ErasureLogAccess, now: number): Promise<void> {
  const { database } = logAccess;
  const log = erasureLog(logAccess);
  const { lines, receipts, names } = await readEnded(database, now - REPAIR_MS);
  const missing = new Set(names);
  const lastSweep = recorded.get(log.path);
  if (lastSweep && isSameFile(lastSweep.file, fileOf(log)))
    for (const name of lastSweep.names) missing.delete(name);
  if (missing.size > 0)
    for await (const { isAuthentic, body, dropped } of readLines(log)) {
      const line = dropped ? null : parseLine(body, isAuthentic);
      // A forged line of the same name does not keep the genuine one out.
      if (line && isAuthentic) missing.delete(nameOf(line));
    }
  const erasures = await erasuresOf(
    database,
    receipts.filter((receipt) => missing.has(receipt)),
  );
  for (const line of [...lines, ...erasures.filter(needsLine).map(tombstoneOf)])
    if (missing.has(nameOf(line))) await appendErasureLine(logAccess, line);
  recorded.set(log.path, { file: fileOf(log), names });
}

/**
 * Compares what ended in the database with the file, and writes what is missing: after a change of a key or a
 * hold, at the start, and in each sweep, so that a line that could not be written is written later.
 */
export function recordEnded(logAccess: ErasureLogAccess, now: number): Promise<void> {
  return serialise(`${erasureLog(logAccess).path} sweep`, () => recordMissingLines(logAccess, now));
}

/**
 * Ends all sessions and open invitations of staff, as a backup has some that ended, were used or were
 * replaced later. It lacks the nonces used since, so that older bundles become `stale`.
 */
export async function endAllSessions(tx: Knex.Transaction, now: number): Promise<void> {
  const invitations = tx('staff').whereNotNull('invite_hash').where('invite_until', '>', now);
  await invitations.update({ invite_hash: null, invite_until: now });
  await tx('console_sessions').delete();
  await tx('principal_sessions').delete();
  await raiseForgotten(tx, now);
}

/**
 * Does again what a line of a key or a hold tells.
 * @param durables the devices that the line of a hold names
 * @returns false if it had been done
 */
export const applyLine = (
  tx: Knex.Transaction,
  line: EndedKey | HoldLine,
  durables: readonly string[] = [],
): Promise<boolean> => (isHold(line) ? changeHold(tx, line, durables) : endKey(tx, line));

async function endKey(tx: Knex.Transaction, line: EndedKey): Promise<boolean> {
  const { table, id, endedAt, ended: endedColumns, undone } = KEYS[line.event];
  const { tenant: kid, at } = line;
  const value = 'id' in line ? line.id : line.generation;
  const row = tx(table)
    .where({ kid, [id]: value })
    .whereNull(endedAt);
  const changedCount = await row.clone().update({ ...endedColumns, [endedAt]: Date.parse(at) });
  await requireNone(tx, row, undone(value, kid));
  return changedCount > 0;
}

/** The words of a basis may name a person, and are not in a log that names nobody. */
const basisOf = ({ at }: HoldLine): string =>
  `A hold placed on ${at.slice(0, 10)}; a restore lost its basis.`;

async function changeHold(tx: Knex.Transaction, line: HoldLine, durables: readonly string[]) {
  const { tenant: kid, device: object, event: action } = line;
  const at = Date.parse(line.at);
  for (const durable of durables)
    if (action === 'hold.released') await releaseHold(tx, { kid, durable });
    else await placeHold(tx, { kid, durable, basis: basisOf(line), createdAt: at });
  const detail = { found: durables.length > 0 };
  await writeAudit(tx, { kid, at, actor: { role: 'system', ref: 'restore' }, action, object, detail });
  return detail.found;
}

/** Ends these keys again, and says which of them had not ended. */
export async function endKeysOfLines(tx: Knex.Transaction, lines: readonly EndedKey[]) {
  const changedKeys: EndedKey[] = [];
  for (const line of lines) if (await applyLine(tx, line)) changedKeys.push(line);
  for (const kid of new Set(changedKeys.map(({ tenant }) => tenant))) await bumpTenant(tx, kid);
  return {
    apiKeysRevoked: changedKeys.flatMap((line) => (line.event === 'apikey.revoked' ? [line.id] : [])),
    staffRemoved: changedKeys.flatMap((line) => (line.event === 'staff.removed' ? [line.id] : [])),
    /** Each is KID/GENERATION. */
    sealKeysDestroyed: changedKeys.flatMap((line) =>
      line.event === 'seal-key.destroyed' ? [`${line.tenant}/${line.generation}`] : [],
    ),
  };
}

/**
 * True when the audit log lacks a change of a hold that it would still have: the database is older than the
 * change.
 */
async function isHoldLost(database: Database, line: HoldLine, now: number): Promise<boolean> {
  const { tenant: kid, device: object, event: action } = line;
  const from = Date.parse(line.at);
  if (from < now - AUDIT_DAYS_MS) return false;
  return (await listAudit(database, kid, { action, object, from }, 1)).length === 0;
}

export type LineCollector = Awaited<ReturnType<typeof createLineCollector>>;

/**
 * Collects what the database has to do again. A line from before the present tenant was made is about an
 * earlier one with the same kid, and is passed over.
 */
export async function createLineCollector(database: Database, now: number) {
  const createdTimes = await readCreationTimes(database);
  const leavingTenants = new Set(await listTenantsInRemoval(database));
  const lostLines = {
    removals: [] as Tombstone[],
    /** Erasures by their receipt. */
    people: new Map<string, Tombstone>(),
    keys: [] as EndedKey[],
    holds: [] as HoldLine[],
  };
  async function collect(batch: readonly FoundLine[]): Promise<void> {
    const present = batch.filter(
      ({ line: { tenant, at } }) => (createdTimes.get(tenant) ?? Infinity) <= Date.parse(at),
    );
    const receipts = present.flatMap(({ line }) => (isTombstone(line) ? [line.receiptId] : []));
    const knownIds = await knownReceipts(database, receipts);
    for (const { line, isAuthentic } of present) {
      if (isRemoval(line)) lostLines.removals.push(line);
      else if (leavingTenants.has(line.tenant)) continue;
      else if (isTombstone(line)) {
        const { receiptId } = line;
        if (!knownIds.has(receiptId) && (isAuthentic || !lostLines.people.has(receiptId)))
          lostLines.people.set(receiptId, line);
      } else if (!isHold(line)) lostLines.keys.push(line);
      else if (await isHoldLost(database, line, now)) lostLines.holds.push(line);
    }
  }
  return {
    ...lostLines,
    collect,
    /** Counts the erasures that the next start will repeat. */
    countErasures: () => new Set(lostLines.removals.map(({ tenant }) => tenant)).size + lostLines.people.size,
  };
}
