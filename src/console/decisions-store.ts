import type { Database } from '../db/engine.ts';
import { byIndex } from '../db/sql.ts';
import { AT_DOOR, type Verdict } from '../ingest/verdict/verdict.ts';
import type { VisitorClass } from '../schema/responses.ts';

/** Reads a page of the decisions of a tenant by time, whatever their number is. */

export interface DecisionFilter {
  readonly class?: VisitorClass | undefined;
  readonly rule?: string | undefined;
  /** The directory of a declared agent. */
  readonly agent?: string | undefined;
  readonly policy?: string | undefined;
  /** Epoch milliseconds, inclusive. */
  readonly from?: number | undefined;
  /** Epoch milliseconds, exclusive. */
  readonly to?: number | undefined;
}

export interface DecisionCursor {
  readonly at: number;
  readonly requestId: string;
}

export interface DecisionQuery {
  readonly filter: DecisionFilter;
  readonly cursor: DecisionCursor | null;
  /** Towards newer decisions. */
  readonly isBackward: boolean;
  readonly limit: number;
}

export interface ListedDecision extends DecisionCursor {
  readonly verdict: Verdict;
}

/** A page looks at this many rows for a rule, an agent or a policy, which no column has. */
export const MAX_LOOKED_AT = 4000;
const BATCH = 500;

type Row = Readonly<{ request_id: string; decided_at: number; verdict: string }>;

/** The class whose rows are read by index; an agent is always declared. */
const indexedClass = ({ class: visitorClass, agent }: DecisionFilter): VisitorClass | null => {
  const name = agent === undefined ? visitorClass : 'declared_agent';
  return name === undefined || name === 'human' ? null : name;
};

async function readRows(
  { read }: Database,
  kid: string,
  { filter, cursor, isBackward }: Omit<DecisionQuery, 'limit'>,
  limit: number,
): Promise<readonly ListedDecision[]> {
  const name = indexedClass(filter);
  const index = name === null ? 'decisions_decided_at' : 'decisions_class';
  const query = read.from(read.raw(byIndex(read, 'decisions', index))).where({ kid });
  // Both databases use the partial index only if its condition is in the query.
  if (name !== null) query.where({ class: name }).whereRaw("class <> 'human'");
  // A refusal at the door is no visit; the page about agents has it.
  else query.whereNot({ class: AT_DOOR });
  if (filter.from !== undefined) query.where('decided_at', '>=', filter.from);
  if (filter.to !== undefined) query.where('decided_at', '<', filter.to);
  if (cursor) {
    const sign = isBackward ? '>' : '<';
    query.where('decided_at', `${sign}=`, cursor.at);
    query.whereRaw(`(decided_at, request_id) ${sign} (?, ?)`, [cursor.at, cursor.requestId]);
  }
  const order = isBackward ? 'asc' : 'desc';
  const sorting = ['decided_at', 'request_id'].map((column) => ({ column, order }));
  const rows = (await query
    .orderBy(sorting)
    .limit(limit)
    .select('request_id', 'decided_at', 'verdict')) as Row[];
  return rows.map(({ request_id: requestId, decided_at: at, verdict }) => ({
    requestId,
    at: Number(at),
    verdict: JSON.parse(verdict) as Verdict,
  }));
}

function matches({ verdict }: ListedDecision, filter: DecisionFilter): boolean {
  const { class: visitorClass, rule, agent, policy } = filter;
  return (
    (visitorClass === undefined || verdict.class === visitorClass) &&
    (rule === undefined || verdict.rules.some(({ id }) => id === rule)) &&
    (agent === undefined || verdict.declaredAgentId === agent) &&
    (policy === undefined || verdict.policyVersion === policy)
  );
}

/** True if rows have to be looked at one by one. */
const needsSearch = ({ class: visitorClass, rule, agent, policy }: DecisionFilter): boolean =>
  visitorClass === 'human' || [rule, agent, policy].some((one) => one !== undefined);

/**
 * @returns decisions in the direction of the query, and the last row that was looked at if the search stopped
 * before the page was full
 */
export async function decisionsPage(database: Database, kid: string, query: DecisionQuery) {
  const { filter, limit } = query;
  const size = needsSearch(filter) ? BATCH : limit;
  const found: ListedDecision[] = [];
  let cursor = query.cursor;
  for (let seen = 0; seen < MAX_LOOKED_AT; seen += size) {
    const rows = await readRows(database, kid, { ...query, cursor }, size);
    found.push(...rows.filter((row) => matches(row, filter)));
    if (rows.length < size || found.length >= limit) return { found: found.slice(0, limit), stoppedAt: null };
    cursor = rows.at(-1) ?? cursor;
  }
  return { found, stoppedAt: cursor };
}
