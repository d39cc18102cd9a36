import type { Knex } from 'knex';
import { listAudit } from '../../audit/audit-store.ts';
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
import { erasuresOf, knownReceipts, receiptsSince, type StoredErasure } from './receipts-store.ts';

/** Keys, holds and erasures that must stay ended after a restore: written as lines of erasures.log, and read from them again. */

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

async function keyLines({ read }: Database, kid: string, since: number): Promise<EndedKey[]> {
  const keys = await read('seal_keys')
    .where({ kid, state: 'destroyed' })
    .where('destroyed_at', '>=', since)
    .select<{ generation: number; at: number }[]>('generation', { at: 'destroyed_at' });
  const revoked = await read('api_keys')
    .where({ kid })
    .where('revoked_at', '>=', since)
    .select<{ id: string; at: number }[]>('id', { at: 'revoked_at' });
  const removed = await read('staff')
    .where({ kid })
    .where('removed_at', '>=', since)
    .select<{ id: string; at: number }[]>('id', { at: 'removed_at' });
  const lineAt = (at: number) => ({ v: 1, at: isoTime(Number(at)), tenant: kid }) as const;
  return [
    ...keys.map(
      ({ generation, at }): EndedKey => ({ ...lineAt(at), event: 'seal-key.destroyed', generation }),
    ),
    ...revoked.map(({ id, at }): EndedKey => ({ ...lineAt(at), event: 'apikey.revoked', id })),
    ...removed.map(({ id, at }): EndedKey => ({ ...lineAt(at), event: 'staff.removed', id })),
  ];
}

/** A line that could not be written is written by any server that runs within this time. */
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

/** One that had nothing to erase was done at once, and has no line. */
const hasLine = ({ step, doneAt }: StoredErasure): boolean => step !== 'done' || doneAt !== undefined;

/** The names that the last sweep found or wrote, by path. A file that another took the place of is read again. */
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
  for (const line of [...lines, ...erasures.filter(hasLine).map(tombstoneOf)])
    if (missing.has(nameOf(line))) await appendErasureLine(logAccess, line);
  recorded.set(log.path, { file: fileOf(log), names });
}

/**
 * Compares what ended in the database with the file, and writes what is missing: after a change of a key or a hold, at the start, and in each
 * sweep, so that a line that could not be written is written later.
 */
export function recordEnded(logAccess: ErasureLogAccess, now: number): Promise<void> {
  return serialise(`${erasureLog(logAccess).path} sweep`, () => recordMissingLines(logAccess, now));
}

/**
 * Ends all sessions and open invitations of staff, as a backup has some that ended, were used or were replaced later. It lacks the
 * nonces used since, so that older bundles become `stale`.
 */
export async function endAllSessions(tx: Knex.Transaction, now: number): Promise<void> {
  const invitations = tx('staff').whereNotNull('invite_hash').where('invite_until', '>', now);
  await invitations.update({ invite_hash: null, invite_until: now });
  await tx('console_sessions').delete();
  await tx('principal_sessions').delete();
  await raiseForgotten(tx, now);
}

async function endKeyOfLine(tx: Knex.Transaction, line: EndedKey): Promise<boolean> {
  const { tenant: kid } = line;
  const at = Date.parse(line.at);
  if (line.event === 'apikey.revoked') {
    const row = tx('api_keys').where({ kid, id: line.id }).whereNull('revoked_at');
    const revokedCount = await row.clone().update({ revoked_at: at });
    await requireNone(tx, row, `API key ${line.id} is not revoked`);
    return revokedCount > 0;
  }
  if (line.event === 'staff.removed') {
    const row = tx('staff').where({ kid, id: line.id }).whereNull('removed_at');
    const change = { invite_hash: null, credential: null, public_key: null, removed_at: at };
    const removedCount = await row.clone().update(change);
    await requireNone(tx, row, `staff member ${line.id} is not removed`);
    return removedCount > 0;
  }
  const row = tx('seal_keys').where({ kid, generation: line.generation }).whereNot({ state: 'destroyed' });
  const destroyedCount = await row
    .clone()
    .update({ state: 'destroyed', wrapped_private: null, destroyed_at: at });
  await requireNone(tx, row, `generation ${line.generation} of ${kid} is not destroyed`);
  return destroyedCount > 0;
}

export async function endKeysOfLines(tx: Knex.Transaction, lines: readonly EndedKey[]) {
  const changedKeys: EndedKey[] = [];
  for (const line of lines) if (await endKeyOfLine(tx, line)) changedKeys.push(line);
  for (const kid of new Set(changedKeys.map(({ tenant }) => tenant))) await bumpTenant(tx, kid);
  return {
    apiKeysRevoked: changedKeys.flatMap((line) => (line.event === 'apikey.revoked' ? [line.id] : [])),
    staffRemoved: changedKeys.flatMap((line) => (line.event === 'staff.removed' ? [line.id] : [])),
    /** KID/GENERATION. */
    sealKeysDestroyed: changedKeys.flatMap((line) =>
      line.event === 'seal-key.destroyed' ? [`${line.tenant}/${line.generation}`] : [],
    ),
  };
}

/** True when the audit log lacks a change of a hold that it would still have: the database is older than the change. */
async function isHoldLost(database: Database, line: HoldLine, now: number): Promise<boolean> {
  const { tenant: kid, device: object, event: action } = line;
  const from = Date.parse(line.at);
  if (from < now - AUDIT_DAYS_MS) return false;
  return (await listAudit(database, kid, { action, object, from }, 1)).length === 0;
}

export type LineCollector = Awaited<ReturnType<typeof createLineCollector>>;

/**
 * Collects what the database has to do again. A line from before the present tenant was made is about an earlier one with the same kid, and
 * is passed over.
 */
export async function createLineCollector(database: Database, now: number) {
  const createdTimes = await readCreationTimes(database);
  const leavingTenants = new Set(await listTenantsInRemoval(database));
  const lostLines = {
    removals: [] as Tombstone[],
    /** The key is the receipt. */
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
