import type { Knex } from 'knex';
import { listAudit } from '../../audit/store.ts';
import { raiseForgotten } from '../../db/clock-rule-store.ts';
import type { Database } from '../../db/db.ts';
import { serialise } from '../../db/files.ts';
import { fileOf, isSameFile, type LogFile, readLines } from '../../db/line-log.ts';
import { bumpTenant, listKids } from '../../db/meta-store.ts';
import { DAY, isoTime } from '../../lib/clock.ts';
import { AUDIT_DAYS_MS } from '../../log/fold.ts';
import { goingTenants, tenantsSince } from '../../tenants/tenant-store.ts';
import {
  append,
  type EndedKey,
  type ErasureLine,
  erasureLog,
  type FoundLine,
  type HoldLine,
  isHold,
  isRemoval,
  isTombstone,
  nameOf,
  type OutsideLog,
  parseLine,
  type Tombstone,
  tombstoneOf,
} from './erasure-log.ts';
import { erasuresOf, knownReceipts, receiptsSince, type StoredErasure } from './receipts.ts';

/** Keys, holds and erasures that must stay ended after a restore: written as lines of erasures.log, and read from them again. */

/** More holds than a tenant places and releases in the time that is looked at. */
const MAX_HOLDS = 10_000;

async function holdLines(database: Database, kid: string, from: number): Promise<HoldLine[]> {
  const lines: HoldLine[] = [];
  for (const event of ['hold.placed', 'hold.released'] as const)
    for (const { at, object, detail } of await listAudit(database, kid, { action: event, from }, MAX_HOLDS)) {
      // A restore that found no such device changed no hold.
      if (object === null || detail['found'] === false) continue;
      lines.push({ v: 1, at: isoTime(at), event, tenant: kid, device: object });
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

/** A line that could not be written is written by any server that runs within so long. */
const REPAIR_MS = 30 * DAY;

/** The names of all that ended, and the lines of keys and holds. The name of an erasure is its receipt. */
async function endedSince(database: Database, since: number) {
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

async function recordMissing(outside: OutsideLog, now: number): Promise<void> {
  const { database } = outside;
  const log = erasureLog(outside);
  const { lines, receipts, names } = await endedSince(database, now - REPAIR_MS);
  const missing = new Set(names);
  const known = recorded.get(log.path);
  if (known && isSameFile(known.file, fileOf(log))) for (const name of known.names) missing.delete(name);
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
    if (missing.has(nameOf(line))) await append(outside, line);
  recorded.set(log.path, { file: fileOf(log), names });
}

/**
 * Compares what ended in the database with the file, and writes what is missing: after a change of a key or a hold, at the start, and in each
 * sweep, so that a line that could not be written is written later.
 */
export function recordEnded(outside: OutsideLog, now: number): Promise<void> {
  return serialise(`${erasureLog(outside).path} sweep`, () => recordMissing(outside, now));
}

/** All sessions end: some of them had ended since. Of nonces that were used since nothing is known: older bundles are `stale`. */
export async function cutOff(tx: Knex.Transaction, now: number): Promise<void> {
  await tx('console_sessions').delete();
  await tx('principal_sessions').delete();
  await raiseForgotten(tx, now);
}

async function endKeyAgain(tx: Knex.Transaction, line: EndedKey): Promise<boolean> {
  const { tenant: kid } = line;
  const at = Date.parse(line.at);
  if (line.event === 'apikey.revoked') {
    const row = tx('api_keys').where({ kid, id: line.id }).whereNull('revoked_at');
    return (await row.update({ revoked_at: at })) > 0;
  }
  if (line.event === 'staff.removed') {
    const row = tx('staff').where({ kid, id: line.id }).whereNull('removed_at');
    const ended = { invite_hash: null, credential: null, public_key: null, removed_at: at };
    return (await row.update(ended)) > 0;
  }
  const row = tx('seal_keys').where({ kid, generation: line.generation }).whereNot({ state: 'destroyed' });
  return (await row.update({ state: 'destroyed', wrapped_private: null, destroyed_at: at })) > 0;
}

export async function endKeysAgain(tx: Knex.Transaction, lines: readonly EndedKey[]) {
  const again: EndedKey[] = [];
  for (const line of lines) if (await endKeyAgain(tx, line)) again.push(line);
  for (const kid of new Set(again.map(({ tenant }) => tenant))) await bumpTenant(tx, kid);
  return {
    apiKeysRevoked: again.flatMap((line) => (line.event === 'apikey.revoked' ? [line.id] : [])),
    staffRemoved: again.flatMap((line) => (line.event === 'staff.removed' ? [line.id] : [])),
    /** KID/GENERATION. */
    sealKeysDestroyed: again.flatMap((line) =>
      line.event === 'seal-key.destroyed' ? [`${line.tenant}/${line.generation}`] : [],
    ),
  };
}

/** A change of a hold of which the audit log tells nothing, although it still would: the database is older. */
async function isLostHold(database: Database, line: HoldLine, now: number): Promise<boolean> {
  const { tenant: kid, device: object, event: action } = line;
  const from = Date.parse(line.at);
  if (from < now - AUDIT_DAYS_MS) return false;
  return (await listAudit(database, kid, { action, object, from }, 1)).length === 0;
}

export type LostLines = Awaited<ReturnType<typeof makeLostLines>>;

/**
 * Collects what the database has to do again. A line from before the present tenant was made is about an earlier one with the same kid, and
 * is passed over.
 */
export async function makeLostLines(database: Database, now: number) {
  const since = await tenantsSince(database);
  const going = new Set(await goingTenants(database));
  const lost = {
    removals: [] as Tombstone[],
    /** The key is the receipt. */
    people: new Map<string, Tombstone>(),
    keys: [] as EndedKey[],
    holds: [] as HoldLine[],
  };
  async function take(some: readonly FoundLine[]): Promise<void> {
    const present = some.filter(
      ({ line: { tenant, at } }) => (since.get(tenant) ?? Infinity) <= Date.parse(at),
    );
    const receipts = present.flatMap(({ line }) => (isTombstone(line) ? [line.receiptId] : []));
    const known = await knownReceipts(database, receipts);
    for (const { line, isAuthentic } of present) {
      if (isRemoval(line)) lost.removals.push(line);
      else if (going.has(line.tenant)) continue;
      else if (isTombstone(line)) {
        const { receiptId } = line;
        if (!known.has(receiptId) && (isAuthentic || !lost.people.has(receiptId)))
          lost.people.set(receiptId, line);
      } else if (!isHold(line)) lost.keys.push(line);
      else if (await isLostHold(database, line, now)) lost.holds.push(line);
    }
  }
  return {
    ...lost,
    take,
    /** How many erasures the next start will repeat. */
    countErasures: () => new Set(lost.removals.map(({ tenant }) => tenant)).size + lost.people.size,
  };
}
