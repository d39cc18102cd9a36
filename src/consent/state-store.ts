import type { Database } from '../db/db.ts';
import { Fault, makeGroup } from '../db/group-commit.ts';
import { askedRows, type Bindings, runHot } from '../db/sql.ts';
import { logLost } from '../db/tenant-hold.ts';
import type { PrincipalState } from './decide.ts';
import { isOptedOut } from './principals-store.ts';

export interface StateQuery {
  readonly kid: string;
  /** Keyed reference of the principal. */
  readonly principal: string;
  readonly purpose: string;
}

/**
 * Reads are batched and always from the database: a withdrawal that was answered is seen by the very next read on every
 * node.
 */
export interface ConsentStateReader {
  read(query: StateQuery): Promise<PrincipalState>;
  /** All of them from one snapshot. */
  readAll(queries: readonly StateQuery[]): Promise<readonly PrincipalState[]>;
}

const MAX_BATCH = 400;
/** A net below the gate of the lane, which is narrower. */
const MAX_WAITING = 2000;

interface Row {
  readonly i: number;
  readonly gpc: unknown;
  readonly gpc_except: string | null;
  readonly erased_at: number | null;
  readonly choice: NonNullable<PrincipalState['event']>['choice'] | null;
  readonly policy_version: number;
  readonly expires_at: number | null;
  readonly seq: number;
  readonly hash: string;
  readonly size: number;
  readonly head_hash: string;
}

const COLUMNS = { kid: 'text', principal: 'text', purpose: 'text' } as const;
const SELECT = `
  SELECT q.i AS i, p.gpc AS gpc, p.gpc_except AS gpc_except, p.erased_at AS erased_at,
    s.choice AS choice, s.policy_version AS policy_version, s.expires_at AS expires_at, s.seq AS seq, s.hash AS hash, h.size AS size, h.head_hash AS head_hash
  FROM q
  JOIN ledger_heads h ON h.kid = q.kid
  LEFT JOIN consent_principals p ON p.kid = q.kid AND p.principal = q.principal
  LEFT JOIN consent_state s ON s.kid = q.kid AND s.principal = q.principal AND s.purpose = q.purpose`;

function toState(row: Row, purpose: string): PrincipalState {
  const { choice, seq, hash } = row;
  const event = choice && {
    choice,
    policyVersion: row.policy_version,
    expiresAt: row.expires_at,
    seq: Number(seq),
    hash,
  };
  const head = { seq: Number(row.size) - 1, hash: row.head_hash };
  return { erased: row.erased_at != null, gpc: isOptedOut(row.gpc, row.gpc_except, purpose), event, head };
}

async function readBatch(
  { read }: Database,
  queries: readonly StateQuery[],
): Promise<(PrincipalState | Fault)[]> {
  const asked = queries.map(({ kid, principal, purpose }): Bindings => [kid, principal, purpose]);
  const { sql, bindings } = askedRows(read, COLUMNS, asked);
  const result = await runHot<Row>(read, sql + SELECT, bindings);
  const rows = new Map(result.map((row) => [Number(row.i), row]));
  const lost = new Map<string, Fault>();
  for (const [i, { kid }] of queries.entries())
    if (!rows.has(i) && !lost.has(kid)) lost.set(kid, new Fault(await logLost(read, kid)));
  return queries.map(({ kid, purpose }, i) => {
    const row = rows.get(i);
    return row ? toState(row, purpose) : (lost.get(kid) as Fault);
  });
}

/** One keyed read for all checks that wait: the state, the principal and the head of the log in one row. */
export function makeConsentStateReader(database: Database): ConsentStateReader {
  const group = makeGroup<StateQuery, PrincipalState>({
    name: 'decide',
    run: (queries) => readBatch(database, queries),
    maxBatch: MAX_BATCH,
    maxWaiting: MAX_WAITING,
  });
  return {
    read: (query) => group.submit(query),
    async readAll(queries) {
      const states = await readBatch(database, queries);
      return states.map((state) => {
        if (state instanceof Fault) throw state.reason;
        return state;
      });
    },
  };
}
