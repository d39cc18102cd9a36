import type { Knex } from 'knex';
import { hasRowLocks, whereAmong } from '../../db/sql.ts';
import { unmarked, unstaged } from '../../ingest/erasing-store.ts';
import { deleteNetworkDays, ofStoredDays } from '../../ingest/network-store.ts';
import { addCount, DEFENCE_BASIS, type Scope, type Tally } from './erasure.ts';
import type { Meant } from './find-store.ts';

/** The tables of a person: what an erasure deletes by device, what by request, and what keeps a row. */

/** An erasure in its transaction. */
export interface Work {
  readonly tx: Knex.Transaction;
  readonly meant: Meant;
  readonly counts: Tally;
  /** The receipt under which this transaction marks requests; null: it deletes their rows itself. */
  readonly marks: string | null;
}

interface Rows {
  readonly scope: Scope;
  readonly table: string;
  /** Which rows of a device belong to the erasure. */
  readonly narrow?: (rows: Knex.QueryBuilder, work: Work) => Knex.QueryBuilder;
  /** Which of these are deleted, where nothing keeps them. */
  readonly going?: (rows: Knex.QueryBuilder, work: Work) => Knex.QueryBuilder;
  /** Deletes them where more changes with them. @returns how many there were */
  readonly remove?: (rows: Knex.QueryBuilder, work: Work) => Promise<number>;
}

export const OVERRIDES: Rows = { scope: 'override', table: 'overrides' };
export const CONTESTS: Rows = { scope: 'contests', table: 'contests' };
const DECISIONS: Rows = { scope: 'decisions', table: 'decisions' };
export const LINKS: Rows = { scope: 'links', table: 'links' };
const SUMMARIES: Rows = { scope: 'signal-summaries', table: 'signal_summaries' };

/** A visit beside the erasure left a decision: the visitorId that it received stays. */
function withoutDecision(index: Knex.QueryBuilder, { tx, marks }: Work): Knex.QueryBuilder {
  // SQLite has one writer: every decision is marked by now, and looking at each would take as long as marking it.
  if (marks !== null && !hasRowLocks(tx)) return index;
  const left = tx('decisions').whereRaw(
    'decisions.kid = visitor_index.kid AND decisions.durable = visitor_index.durable',
  );
  return index.whereNotExists(marks === null ? unmarked(left, 'decisions') : unstaged(left, marks));
}

/** Sightings before the index: a visit that is under way holds its row, and its decision is there once the row is free. */
export const OF_DEVICES: readonly Rows[] = [
  { scope: 'sightings', table: 'sightings' },
  { scope: 'visitor-index', table: 'visitor_index', going: withoutDecision },
  {
    scope: 'network-marks',
    table: 'network_marks',
    narrow: (rows) => ofStoredDays(rows, 'network_marks'),
  },
  {
    scope: 'network-marks',
    table: 'network_days',
    narrow: (rows) => ofStoredDays(rows, 'network_days'),
    remove: (rows, { tx, meant }) => deleteNetworkDays(tx, meant.target.kid, rows),
  },
];

/** A device may have one per visit, so that a large erasure deletes them in steps. */
export const OF_REQUESTS: readonly Rows[] = [DECISIONS, LINKS, SUMMARIES];

interface Named {
  readonly column: 'durable' | 'request_id';
  readonly ids: readonly string[];
  /** The basis on which the rows of this id stay; undefined: they are deleted. */
  readonly basisOf: (id: string) => string | undefined;
  readonly narrow?: ((rows: Knex.QueryBuilder) => Knex.QueryBuilder) | undefined;
}

export async function countOf(rows: Knex.QueryBuilder): Promise<number> {
  const [row] = (await rows.count({ n: '*' })) as { n: number }[];
  return Number(row?.n ?? 0);
}

/** Deletes the rows that nothing keeps, and counts the others. */
async function eraseNamed(work: Work, { scope, table, going, remove }: Rows, named: Named): Promise<void> {
  const { tx, meant, counts } = work;
  const { column, ids, basisOf, narrow } = named;
  const rows = (some: string[]): Knex.QueryBuilder => {
    const found = whereAmong(tx(table).where({ kid: meant.target.kid }), tx, column, some);
    return narrow?.(found) ?? found;
  };
  const free = ids.filter((id) => basisOf(id) === undefined);
  const held = ids.filter((id) => basisOf(id) !== undefined);
  const all = rows(free);
  const gone = going?.(all, work) ?? all;
  const erased = free.length === 0 ? 0 : await (remove ? remove(gone, work) : gone.delete());
  const retained = held.length === 0 ? 0 : await countOf(rows(held));
  addCount(counts, scope, { erased, retained, basis: basisOf(held[0] ?? '') });
}

export function basisOfDevice({ holds, found }: Meant, scope: Scope): Named['basisOf'] {
  if (scope !== 'visitor-index') return (durable) => holds.basis(scope, durable);
  return (durable) => holds.basis(scope, durable) ?? (found.has(durable) ? DEFENCE_BASIS : undefined);
}

export function basisOfRequest({ holds, requests }: Meant, scope: Scope): Named['basisOf'] {
  return (id) => holds.basis(scope, requests.get(id));
}

export const byDevice = (work: Work, rows: Rows): Promise<void> =>
  eraseNamed(work, rows, {
    column: 'durable',
    ids: work.meant.target.durables,
    basisOf: basisOfDevice(work.meant, rows.scope),
    narrow: (query) => rows.narrow?.(query, work) ?? query,
  });

export const byRequest = (
  work: Work,
  rows: Rows,
  ids: readonly string[],
  narrow?: Named['narrow'],
): Promise<void> =>
  eraseNamed(work, rows, {
    column: 'request_id',
    ids,
    basisOf: basisOfRequest(work.meant, rows.scope),
    narrow,
  });
