import type { Database } from '../db/db.ts';
import { Fault, makeGroup, oneTenant } from '../db/group-commit.ts';
import { ConsentStateInvalid, logLost } from '../db/meta-store.ts';
import type { Columns } from '../db/sql.ts';
import { askedRows, type Bindings, isTrue, runHot } from '../db/sql.ts';
import { macFits, type StateMac, type StateRow } from '../tenants/state-mac.ts';
import type { PrincipalState } from './decide.ts';
import { isOptedOut, type PrincipalColumns, toPrincipalRow } from './principals-store.ts';

export interface StateQuery {
  readonly kid: string;
  /** Keyed reference of the principal. */
  readonly principal: string;
  readonly purpose: string;
  readonly mac: StateMac;
}

const MAX_BATCH = 400;
/** A net below the gate of the lane, which is narrower. */
const MAX_WAITING = 2000;

/** What somebody said last of a purpose, as the columns have it. */
export type StateColumns = Columns<Omit<StateRow, 'overGpc'>> & { readonly over_gpc: unknown };

const numberOf = (cell: number | null): number | null => (cell === null ? null : Number(cell));

export const toStateRow = (row: StateColumns): StateRow => ({
  choice: row.choice,
  policyVersion: Number(row.policy_version),
  expiresAt: numberOf(row.expires_at),
  at: Number(row.at),
  seq: Number(row.seq),
  hash: row.hash,
  overGpc: isTrue(row.over_gpc),
  given: row.given,
  doubtSeq: numberOf(row.doubt_seq),
});

interface Row extends PrincipalColumns, Omit<StateColumns, 'choice'> {
  readonly i: number;
  readonly principal: string | null;
  readonly principal_mac: string | null;
  readonly choice: StateRow['choice'] | null;
  readonly mac: string | null;
  readonly size: number;
  readonly head_hash: string;
}

const COLUMNS = { kid: 'text', principal: 'text', purpose: 'text' } as const;
const SELECT = `
  SELECT q.i AS i, p.principal AS principal, p.gpc AS gpc, p.gpc_except AS gpc_except, p.erased_at AS erased_at,
    p.mac AS principal_mac, s.choice AS choice, s.policy_version AS policy_version, s.expires_at AS expires_at,
    s.at AS at, s.seq AS seq, s.hash AS hash, s.over_gpc AS over_gpc, s.given AS given, s.doubt_seq AS doubt_seq,
    s.mac AS mac, h.size AS size, h.head_hash AS head_hash
  FROM q
  JOIN ledger_heads h ON h.kid = q.kid
  LEFT JOIN consent_principals p ON p.kid = q.kid AND p.principal = q.principal
  LEFT JOIN consent_state s ON s.kid = q.kid AND s.principal = q.principal AND s.purpose = q.purpose`;

/** A row is parsed once, and its MAC is compared with exactly what a decision sees. */
function toState(row: Row, { kid, principal, purpose, mac }: StateQuery): PrincipalState | Fault {
  const { choice } = row;
  const who = toPrincipalRow(row);
  const head = { seq: Number(row.size) - 1, hash: row.head_hash };
  const said = choice !== null && toStateRow({ ...row, choice });
  const known = row.principal !== null;
  // No event without its principal: that row has the signal.
  const fits = known ? macFits(row.principal_mac, mac.ofPrincipal(principal, who)) : !said;
  if (!fits || (said && !macFits(row.mac, mac.ofState(principal, purpose, said))))
    return new Fault(new ConsentStateInvalid(kid));
  const gpc = known && isOptedOut(who.gpc, who.except, purpose);
  return { erased: known && who.erasedAt !== null, gpc, event: said || null, head };
}

async function readBatch({ read }: Database, queries: readonly StateQuery[]) {
  const asked = queries.map(({ kid, principal, purpose }): Bindings => [kid, principal, purpose]);
  const { sql, bindings } = askedRows(read, COLUMNS, asked);
  const result = await runHot<Row>(read, sql + SELECT, bindings);
  const rows = new Map(result.map((row) => [Number(row.i), row]));
  const lost = new Map<string, Fault>();
  for (const [i, { kid }] of queries.entries())
    if (!rows.has(i) && !lost.has(kid)) lost.set(kid, new Fault(await logLost(read, kid)));
  return queries.map((query, i) => {
    const row = rows.get(i);
    return row ? toState(row, query) : (lost.get(query.kid) as Fault);
  });
}

/**
 * One keyed read for all checks that wait: the state, the principal and the head of the log in one row. Always from the
 * database: a withdrawal that was answered is seen by the very next read on every node.
 */
export function makeConsentStateReader(database: Database) {
  const group = makeGroup<StateQuery, PrincipalState>({
    name: 'decide',
    run: (queries) => readBatch(database, queries),
    maxBatch: MAX_BATCH,
    maxWaiting: MAX_WAITING,
    ...oneTenant(database.kind, ({ kid }: StateQuery) => kid),
  });
  return {
    /** @throws {ConsentStateInvalid} where a row does not carry its MAC */
    read: (query: StateQuery) => group.submit(query),
    /** All of them from one snapshot. */
    async readAll(queries: readonly StateQuery[]): Promise<readonly PrincipalState[]> {
      const states = await readBatch(database, queries);
      return states.map((state) => {
        if (state instanceof Fault) throw state.reason;
        return state;
      });
    },
  };
}

export type ConsentStateReader = ReturnType<typeof makeConsentStateReader>;
