import type { Database } from '../db/db.ts';
import { Fault, makeGroup } from '../db/group-commit.ts';
import { askedRows, type Bindings, isTrue, runHot } from '../db/sql.ts';
import { ConsentStateInvalid } from '../db/state-invalid.ts';
import { logLost } from '../db/tenant-hold.ts';
import type { PrincipalState } from './decide.ts';
import { isOptedOut } from './principals-store.ts';
import { macFits, type StateMac } from './state-mac.ts';

export interface StateQuery {
  readonly kid: string;
  /** Keyed reference of the principal. */
  readonly principal: string;
  readonly purpose: string;
  readonly mac: StateMac;
}

/**
 * Reads are batched and always from the database: a withdrawal that was answered is seen by the very next read on every
 * node.
 */
export interface ConsentStateReader {
  /** @throws {ConsentStateInvalid} where a row does not carry its MAC */
  read(query: StateQuery): Promise<PrincipalState>;
  /** All of them from one snapshot. */
  readAll(queries: readonly StateQuery[]): Promise<readonly PrincipalState[]>;
}

const MAX_BATCH = 400;
/** A net below the gate of the lane, which is narrower. */
const MAX_WAITING = 2000;

interface Row {
  readonly i: number;
  readonly principal: string | null;
  readonly gpc: unknown;
  readonly gpc_except: string | null;
  readonly erased_at: number | null;
  readonly principal_mac: string | null;
  readonly choice: NonNullable<PrincipalState['event']>['choice'] | null;
  readonly policy_version: number;
  readonly expires_at: number | null;
  readonly at: number;
  readonly seq: number;
  readonly hash: string;
  readonly mac: string | null;
  readonly size: number;
  readonly head_hash: string;
}

const COLUMNS = { kid: 'text', principal: 'text', purpose: 'text' } as const;
const SELECT = `
  SELECT q.i AS i, p.principal AS principal, p.gpc AS gpc, p.gpc_except AS gpc_except, p.erased_at AS erased_at,
    p.mac AS principal_mac, s.choice AS choice, s.policy_version AS policy_version, s.expires_at AS expires_at,
    s.at AS at, s.seq AS seq, s.hash AS hash, s.mac AS mac, h.size AS size, h.head_hash AS head_hash
  FROM q
  JOIN ledger_heads h ON h.kid = q.kid
  LEFT JOIN consent_principals p ON p.kid = q.kid AND p.principal = q.principal
  LEFT JOIN consent_state s ON s.kid = q.kid AND s.principal = q.principal AND s.purpose = q.purpose`;

const orNull = (value: unknown): number | null => (value === null ? null : Number(value));

/** A row is taken apart once, and what its MAC is held against is what a decision sees. */
function toState(row: Row, { kid, principal, purpose, mac }: StateQuery): PrincipalState | Fault {
  const { choice, hash } = row;
  const who = { gpc: isTrue(row.gpc), except: row.gpc_except, erasedAt: orNull(row.erased_at) };
  const head = { seq: Number(row.size) - 1, hash: row.head_hash };
  const said = choice !== null && {
    choice,
    policyVersion: Number(row.policy_version),
    expiresAt: orNull(row.expires_at),
    at: Number(row.at),
    seq: Number(row.seq),
    hash,
  };
  const known = row.principal !== null;
  // No event without its principal: that row has the signal.
  const fits = known ? macFits(row.principal_mac, mac.ofPrincipal(principal, who)) : !said;
  if (!fits || (said && !macFits(row.mac, mac.ofState(principal, purpose, said))))
    return new Fault(new ConsentStateInvalid(kid));
  const gpc = known && isOptedOut(who.gpc, who.except, purpose);
  return { erased: known && who.erasedAt !== null, gpc, event: said || null, head };
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
  return queries.map((query, i) => {
    const row = rows.get(i);
    return row ? toState(row, query) : (lost.get(query.kid) as Fault);
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
