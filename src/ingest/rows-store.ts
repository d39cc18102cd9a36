import type { Bindings } from '../db/sql.ts';
import { commitVerdict } from '../ledger/commitment.ts';
import type { NonceClaim, RecordEntry } from './ports.ts';

/** The rows that accepted bundles leave; pure. */

/** By the second column: one order of rows for all nodes keeps concurrent batches from deadlocking on PostgreSQL. */
const inOrder = (rows: Iterable<Bindings>): Bindings[] =>
  [...rows].sort((a, b) => (String(a[1]) < String(b[1]) ? -1 : 1));

export const nonceRows = (claims: readonly NonceClaim[]): Bindings[] =>
  inOrder(claims.map(({ kid, nonce, datedAt }) => [kid, nonce, datedAt]));

interface SightingGroup {
  readonly kid: string;
  readonly durable: string;
  first: number;
  last: number;
  seen: number;
}

/** One row a device: PostgreSQL refuses to update a row twice in one statement. */
function groupSightings(entries: readonly RecordEntry[]): SightingGroup[] {
  const groups = new Map<string, SightingGroup>();
  for (const { kid, identified, verdict } of entries) {
    if (!identified) continue;
    const { durable } = identified;
    const at = verdict.decidedAt;
    const group = groups.get(`${kid}|${durable}`);
    if (group) {
      group.first = Math.min(group.first, at);
      group.last = Math.max(group.last, at);
      group.seen += 1;
    } else {
      groups.set(`${kid}|${durable}`, { kid, durable, first: at, last: at, seen: 1 });
    }
  }
  return [...groups.values()];
}

export function sightingRows(entries: readonly RecordEntry[]): Bindings[] {
  const rows = groupSightings(entries).map(({ kid, durable, first, last, seen }) => {
    return [kid, durable, first, last, seen];
  });
  return inOrder(rows);
}

/** Of every visit: that the device was seen in this epoch does not say that the index has its visitorId still. */
export function indexRows(entries: readonly RecordEntry[]): Bindings[] {
  const rows = new Map<string, Bindings>();
  for (const { kid, identified } of entries) {
    if (!identified) continue;
    const { visitorId, durable, epoch, epochEndsAt } = identified;
    rows.set(`${kid}|${visitorId}`, [kid, visitorId, durable, epoch, epochEndsAt]);
  }
  return inOrder(rows.values());
}

/** One row a network, device and day that was not counted before. */
export function markRows(entries: readonly RecordEntry[]): Bindings[] {
  const rows = new Map<string, Bindings>();
  for (const { kid, identified } of entries) {
    if (!identified || identified.marked) continue;
    const row = [kid, identified.durable, identified.day, identified.network];
    rows.set(row.join('|'), row);
  }
  return inOrder(rows.values());
}

/** How many of `rows` share a key, as rows to be added up, in the order of the keys. */
export function countBy<Row>(rows: readonly Row[], keyOf: (row: Row) => readonly (string | number)[]) {
  const counts = new Map<string, Bindings>();
  for (const row of rows) {
    const key = keyOf(row);
    const id = key.join('|');
    const known = counts.get(id);
    if (known) known[key.length] = Number(known[key.length]) + 1;
    else counts.set(id, [...key, 1]);
  }
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}

/** How often the shadow agrees and how often it does not. */
export function shadowRows(entries: readonly RecordEntry[]): Bindings[] {
  const counted = entries.flatMap(({ kid, shadow, verdict }) => (shadow ? [{ kid, shadow, verdict }] : []));
  return countBy(counted, ({ kid, shadow, verdict }) => {
    return [kid, shadow.day, shadow.policyVersion, verdict.class, shadow.class];
  });
}

/** @param anchoredTo what is written now is no row of an anchored hour, whatever a clock that went back says */
export function decisionRows(entries: readonly RecordEntry[], anchoredTo: (kid: string) => number) {
  return entries.map(({ kid, verdict, salt }): Bindings => {
    const text = JSON.stringify(verdict);
    const commitment = commitVerdict(Buffer.from(salt, 'base64url'), kid, verdict.requestId, text);
    return [
      kid,
      verdict.requestId,
      Math.max(verdict.decidedAt, anchoredTo(kid)),
      verdict.class,
      verdict.durable,
      text,
      salt,
      commitment,
    ];
  });
}
