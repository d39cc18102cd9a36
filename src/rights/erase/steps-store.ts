import type { Knex } from 'knex';
import type { Database } from '../../db/db.ts';
import { inPieces } from '../../db/purge.ts';
import { whereAmong } from '../../db/sql.ts';
import { between } from '../../ingest/erasing-store.ts';
import { inChunks } from '../../lib/chunks.ts';
import { lockHead } from '../../log/append-store.ts';
import { type AnchoredPlaces, hourOfVerdict, makeAnchoredPlaces } from '../../log/verdict-anchor-store.ts';
import { addCount, type Scope } from './erasure.ts';
import { type Meant, type RequestRow, type Requests, whoIsMeant } from './find-store.ts';
import { markHeldDevices, markHeldRequests } from './held-mark-store.ts';
import { holdsOn } from './hold-store.ts';
import { addStep, type StoredErasure } from './receipts-store.ts';
import { basisOfRequest, makeWork, type Work } from './rows-store.ts';
import { MIN_STEP, type Staged, stageRest } from './stage-store.ts';
import { type ErasedRows, erasedRows, STEPS, takeParts, WITH_MARK } from './store.ts';

/**
 * A large erasure (ADR 0028): its requests are staged (stage-store.ts); one transaction marks them, which hides them from every read,
 * and erases everything else; steps delete their rows. Requests that come after the mark are not part of it.
 */

interface MarkedRow extends RequestRow {
  readonly held: string | null;
}

/** Counts decisions with the mark: from then on they are gone for every reader. */
function countDecisions({ meant, counts }: Work, { withoutDecision }: Staged): void {
  const { requests, holds, stays } = meant;
  const basisOf = basisOfRequest(meant, 'decisions');
  const others = new Set([...withoutDecision, ...stays].filter((id) => requests.has(id)));
  let erased = requests.size - others.size;
  // The tenant's log is locked: each of 100,000 is looked at only where a hold may keep it.
  for (const id of holds.devices.size > 0 ? requests.keys() : []) {
    const basis = others.has(id) ? undefined : basisOf(id);
    if (basis === undefined) continue;
    erased -= 1;
    addCount(counts, 'decisions', { erased: 0, retained: 1, basis });
  }
  addCount(counts, 'decisions', { erased, retained: 0 });
}

/** Marks what is staged and erases everything that is not per request. The head of the tenant's log must be locked. */
export async function markStaged(tx: Knex.Transaction, staged: Staged): Promise<ErasedRows> {
  const { receiptId, target, requests } = staged;
  const allStaged = await stageRest(tx, staged);
  const meant = await whoIsMeant(tx, target, requests);
  await inChunks([...meant.stays], (ids) =>
    tx('erasing').where({ receipt_id: receiptId }).whereIn('request_id', ids).delete(),
  );
  const work = makeWork(tx, meant, { tx, marks: receiptId, allStaged });
  await takeParts(work, WITH_MARK);
  countDecisions(work, staged);
  await markHeldDevices(tx, target, meant.holds);
  for (const durable of meant.holds.devices)
    await tx('erasing')
      .where({ receipt_id: receiptId, durable })
      .update({ held: meant.holds.scopes(durable).join(',') });
  // This erasure handles them now; a step records those again that a hold keeps.
  await inChunks(target.requests, (ids) =>
    tx('held_erasures').where({ kid: target.kid }).whereIn('request_id', ids).delete(),
  );
  return erasedRows(
    work,
    meant.stays.size === 0 ? [...requests.keys()] : [...requests.keys()].filter((id) => !meant.stays.has(id)),
  );
}

const noContests = (): string => {
  throw new Error('the mark has deleted the contests');
};

/** Deletes the rows of these requests, in the order of the database, where they are still marked. @returns those of which a hold keeps a row */
async function eraseStep(
  tx: Knex.Transaction,
  erasure: StoredErasure,
  places: AnchoredPlaces,
  some: readonly string[],
): Promise<Iterable<string>> {
  const { kid, receiptId, keep, requestedBy } = erasure;
  await lockHead(tx, kid);
  const these = (): Knex.QueryBuilder => between(tx('erasing').where({ receipt_id: receiptId }), some);
  const found = (await these().select('request_id', 'durable', 'held')) as MarkedRow[];
  const requests: Requests = new Map(found.map(({ request_id: id, durable }) => [id, durable]));
  const held = new Map(found.map((row) => [row.durable ?? '', (row.held ?? '').split(',')]));
  // Holds that the mark met and that are still there.
  const wasHeld = (durable: string, scope: Scope): boolean => held.get(durable)?.includes(scope) ?? false;
  const nobody: ReadonlySet<string> = new Set();
  const none = { durables: [], requests: [], linksOf: null, requestRef: noContests };
  const meant: Meant = {
    target: { kid, keep, requestedBy, ...none },
    requests,
    holds: await holdsOn(tx, kid, [...held.keys()], wasHeld),
    devices: nobody,
    contested: [],
    stays: nobody,
    found: nobody,
  };
  const ids = [...requests.keys()];
  const work = makeWork(tx, meant, { tx, going: ids, places });
  await takeParts(work, STEPS);
  const kept = meant.holds.devices.size > 0 ? await markHeldRequests(tx, meant, ids) : [];
  await these().delete();
  await addStep(tx, receiptId, work.counts);
  return kept;
}

/** The requests that are still marked, and the places of their verdicts in anchored hours. */
async function readMarked({ read }: Database, { kid, receiptId }: StoredErasure) {
  const marked = read('erasing').where({ receipt_id: receiptId }).orderBy('request_id');
  const ids = (await marked.pluck('request_id')) as string[];
  const places = makeAnchoredPlaces(kid, new Set(ids));
  const hours = new Set<number>();
  await inChunks(ids, async (some) => {
    const found = whereAmong(read('decisions').where({ kid }), read, 'request_id', some);
    for (const row of await found.select('decided_at')) hours.add(hourOfVerdict(row));
  });
  await places.prepare(read, hours);
  return { ids, places };
}

/**
 * Deletes the rows of marked requests in steps. Other nodes may do the same at the same time.
 * @param goesOn false stops between two steps
 * @returns request ids that must be in no file
 */
export async function deleteMarked(database: Database, erasure: StoredErasure, goesOn: () => boolean) {
  const { ids, places } = await readMarked(database, erasure);
  const gone = new Set(ids);
  const step = async (tx: Knex.Transaction, some: readonly string[]): Promise<number> => {
    for (const id of await eraseStep(tx, erasure, places, some)) gone.delete(id);
    return some.length;
  };
  await inPieces(database, ids, step, { minRows: MIN_STEP, goesOn });
  return gone;
}
