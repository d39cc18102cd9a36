import type { Knex } from 'knex';
import { countOf, whereAmong } from '../../db/sql.ts';
import { unmarked, unstaged } from '../../ingest/erasing-store.ts';
import { deleteNetworkDays, ofStoredDays } from '../../ingest/network-store.ts';
import { type AnchoredPlaces, type ErasedVerdict, keepCommitments } from '../../log/verdict-anchor-store.ts';
import type { ContestRow } from '../contests/store.ts';
import type { TableName } from '../subject-data.ts';
import { rowOf } from '../subject-folds.ts';
import { addCount, DEFENCE_BASIS, emptyTally, type Scope } from './erasure.ts';
import type { Meant } from './find-store.ts';

/** The rows of one table: an erasure deletes and counts them, a plan counts alone. */

interface How {
  /** Null: a plan, which deletes nothing. */
  readonly tx: Knex.Transaction | null;
  /** Requests whose rows go now. */
  readonly going: readonly string[];
  /** The receipt under which this transaction marks requests; null: it deletes their rows itself. */
  readonly marks: string | null;
  /** Every decision is staged, and none can come before the mark: looking at each would take as long as marking it. */
  readonly allStaged: boolean;
  /** Positions of the requests' verdicts in anchored hours; null: no verdict is deleted. */
  readonly places: AnchoredPlaces | null;
}

const PLAN: How = { tx: null, going: [], marks: null, allStaged: false, places: null };

export type Work = Readonly<ReturnType<typeof makeWork>>;

/** @param db the transaction, or the reads of a plan */
export const makeWork = (db: Knex, meant: Meant, how: Partial<How>) => ({
  ...PLAN,
  ...how,
  db,
  meant,
  counts: emptyTally(),
  /** Deleted visitorIds: only the index holds them. */
  visitorIds: [] as string[],
  /** What deleted contests held: the hash of their case key, and the start of their encrypted texts. */
  caseBytes: [] as string[],
});

interface Special {
  /** Which rows of a device belong to the erasure. */
  readonly narrow?: (rows: Knex.QueryBuilder) => Knex.QueryBuilder;
  /** Reads what is known from these rows alone, before they go. */
  readonly before?: (tx: Knex.Transaction, work: Work, rows: Knex.QueryBuilder) => Promise<void>;
  /** Which of these are deleted, where nothing keeps them. */
  readonly going?: (rows: Knex.QueryBuilder, work: Work) => Knex.QueryBuilder;
  /** Deletes them where more changes with them. @returns how many there were */
  readonly remove?: (tx: Knex.Transaction, work: Work, rows: Knex.QueryBuilder) => Promise<number>;
}

/** A visit during the erasure left a decision: the visitorId that it received is kept. */
function withoutDecision(rows: Knex.QueryBuilder, { db, tx, marks, allStaged, visitorIds }: Work) {
  // A plan finds the decisions that an erasure has deleted by now.
  if (tx === null) return rows;
  // By the table's key: to delete by the device alone SQLite reads all rows of the tenant.
  const index = whereAmong(rows, db, 'visitor_id', visitorIds);
  if (allStaged) return index;
  const left = db('decisions').whereRaw(
    'decisions.kid = visitor_index.kid AND decisions.durable = visitor_index.durable',
  );
  return index.whereNotExists(marks === null ? unmarked(left, 'decisions') : unstaged(left, marks));
}

/** As much of an encrypted text as is surely in one piece: SQLite moves the rest to other pages. Its nonce is in it. */
export const CIPHERTEXT_START = 48;

const SPECIAL: Partial<Record<TableName, Special>> = {
  contests: {
    async before(_tx, { caseBytes }, rows) {
      for (const row of (await rows.select('case_hash', 'sealed')) as ContestRow[])
        for (const text of [row.case_hash, row.sealed?.slice(0, CIPHERTEXT_START)])
          if (text) caseBytes.push(text);
    },
  },
  decisions: {
    async before(tx, { meant, places }, rows) {
      const going = (await rows.select('request_id', 'decided_at', 'commitment')) as ErasedVerdict[];
      if (places !== null) await keepCommitments(tx, meant.target.kid, going, places);
    },
  },
  visitor_index: {
    async before(_tx, { visitorIds }, rows) {
      for (const id of (await rows.pluck('visitor_id')) as string[]) visitorIds.push(id);
    },
    going: withoutDecision,
  },
  network_marks: { narrow: (rows) => ofStoredDays(rows, 'network_marks') },
  network_days: {
    narrow: (rows) => ofStoredDays(rows, 'network_days'),
    remove: (tx, { meant }, rows) => deleteNetworkDays(tx, meant.target.kid, rows),
  },
};

const all = (rows: Knex.QueryBuilder): Knex.QueryBuilder => rows;

/** The basis on which the rows of this id stay; undefined: they are deleted. */
type BasisOf = (id: string) => string | undefined;

function basisOfDevice({ holds, found }: Meant, scope: Scope): BasisOf {
  if (scope !== 'visitor-index') return (durable) => holds.basis(scope, durable);
  return (durable) => holds.basis(scope, durable) ?? (found.has(durable) ? DEFENCE_BASIS : undefined);
}

export function basisOfRequest({ holds, requests }: Meant, scope: Scope): BasisOf {
  return (id) => holds.basis(scope, requests.get(id));
}

interface Named {
  readonly column: 'durable' | 'request_id';
  readonly ids: readonly string[];
  readonly narrow?: (rows: Knex.QueryBuilder) => Knex.QueryBuilder;
}

/** Deletes the rows that nothing keeps, and counts the others. What is on no receipt is deleted with the decision. */
export async function takeNamed(work: Work, table: TableName, named: Named): Promise<void> {
  const { db, tx, meant, counts } = work;
  const { column, ids } = named;
  const { scope } = rowOf(table);
  const { narrow = all, before, going = all, remove } = SPECIAL[table] ?? {};
  const basisOf = (column === 'durable' ? basisOfDevice : basisOfRequest)(meant, scope ?? 'decisions');
  const rows = (some: readonly string[]): Knex.QueryBuilder => {
    const found = narrow(whereAmong(db(table).where({ kid: meant.target.kid }), db, column, some));
    return named.narrow?.(found) ?? found;
  };
  const take = async (free: readonly string[]): Promise<number> => {
    if (tx === null) return countOf(rows(free));
    await before?.(tx, work, rows(free));
    const gone = going(rows(free), work);
    return remove ? remove(tx, work, gone) : gone.delete();
  };
  const free = ids.filter((id) => basisOf(id) === undefined);
  const held = ids.filter((id) => basisOf(id) !== undefined);
  const erased = free.length === 0 ? 0 : await take(free);
  if (scope === null) return;
  const retained = held.length === 0 ? 0 : await countOf(rows(held));
  addCount(counts, scope, { erased, retained, basis: basisOf(held[0] ?? '') });
}
