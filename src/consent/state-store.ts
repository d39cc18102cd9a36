import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { createGroup, ItemFault, oneTenant } from '../db/group-commit.ts';
import { ConsentStateInvalid, missingLogError } from '../db/meta-store.ts';
import { type Bindings, type Columns, isTrue, joinRow, joinRows, runAsked } from '../db/sql.ts';
import { isMacValid, type PrincipalRow, type StateMac, type StateRow } from '../tenants/state-mac.ts';
import { joinStates, type PrincipalState } from './decide.ts';

/**
 * Reads the rows from which a check is decided: the last choice, the principal and the head of the log. Each
 * row must have its MAC.
 */

export interface StateQuery {
  readonly kid: string;
  /** Keyed reference of the principal. */
  readonly principal: string;
  readonly purpose: string;
  readonly mac: StateMac;
}

const MAX_BATCH = 400;
/** This limit is never reached, because the route admits fewer requests at once. */
const MAX_WAITING = 2000;

/** Columns of a principal's last choice for a purpose. */
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
  definition: numberOf(row.definition),
});

/** Columns of a principal. */
export interface PrincipalColumns {
  readonly gpc: unknown;
  readonly gpc_except: string | null;
  readonly erased_at: number | null;
  readonly account: string | null;
  readonly withheld: string | null;
}

export const toPrincipalRow = ({
  gpc,
  gpc_except,
  erased_at,
  account,
  withheld,
}: PrincipalColumns): PrincipalRow => ({
  gpc: isTrue(gpc),
  except: gpc_except,
  erasedAt: erased_at === null ? null : Number(erased_at),
  account,
  withheld,
});

/** A list of purposes, as a column has it. */
export const parsePurposes = (column: string | null): readonly string[] =>
  column === null ? [] : (JSON.parse(column) as string[]);

/** True if a recorded GPC signal opts out of this purpose. @param except the column `gpc_except` */
export const isOptedOut = (gpc: boolean, except: string | null, purpose: string): boolean =>
  gpc && !parsePurposes(except).includes(purpose);

/** A principal that is asked about, or one that is joined with it, and its last choice. */
export interface MemberRow extends PrincipalColumns, Omit<StateColumns, 'choice'> {
  readonly principal: string | null;
  readonly principal_mac: string | null;
  readonly choice: StateRow['choice'] | null;
  readonly mac: string | null;
}

interface Row extends MemberRow {
  readonly i: number;
  readonly size: number;
  readonly head_hash: string;
}

const COLUMNS = { principal: 'text', purpose: 'text' } as const;
/** Columns of the principal that is asked about, or of each that is joined with it. */
const ofMember = (...names: readonly string[]): string =>
  names
    .map((name) => `CASE WHEN m.principal IS NULL THEN p.${name} ELSE m.${name} END AS ${name}`)
    .join(', ');
/** Columns of {@link MemberRow}, from `p`, `m` and `s` as {@link select} joins them. */
export const MEMBER = `${ofMember('principal', 'gpc', 'gpc_except', 'erased_at', 'account', 'withheld')},
    CASE WHEN m.principal IS NULL THEN p.mac ELSE m.mac END AS principal_mac, s.choice AS choice, s.policy_version AS policy_version, s.expires_at AS expires_at,
    s.at AS at, s.seq AS seq, s.hash AS hash, s.over_gpc AS over_gpc, s.given AS given, s.doubt_seq AS doubt_seq,
    s.definition AS definition, s.mac AS mac`;
const select = (db: Knex): string => `SELECT q.i AS i, ${MEMBER}, h.size AS size, h.head_hash AS head_hash
  FROM q
  JOIN ledger_heads h ON h.kid = ?
  ${joinRow(db, 'consent_principals', 'p', 'p.kid = ? AND p.principal = q.principal')}
  ${joinRows(db, 'consent_principals', 'm', 'consent_principals_account', 'm.kid = ? AND m.account = p.account')}
  ${joinRow(db, 'consent_state', 's', 's.kid = ? AND s.principal = COALESCE(m.principal, q.principal) AND s.purpose = q.purpose')}`;

/**
 * A row is parsed once, and its MAC is compared with exactly what a decision sees. The row may be of a
 * principal that is joined with the one that is asked about.
 * @returns the last choice, null for none; undefined: gpd did not write the row
 */
export function readChoice(
  row: MemberRow,
  { purpose, mac }: Pick<StateQuery, 'purpose' | 'mac'>,
): StateRow | null | undefined {
  const { choice, principal } = row;
  // A choice without a principal is forged: somebody deleted the principal's row, which had the GPC signal.
  if (principal === null) return choice === null ? null : undefined;
  if (!isMacValid(row.principal_mac, mac.ofPrincipal(principal, toPrincipalRow(row)))) return undefined;
  if (choice === null) return null;
  const lastChoice = toStateRow({ ...row, choice });
  return isMacValid(row.mac, mac.ofState(principal, purpose, lastChoice)) ? lastChoice : undefined;
}

function toState(row: Row, query: StateQuery): PrincipalState | ItemFault {
  const event = readChoice(row, query);
  if (event === undefined) return new ItemFault(new ConsentStateInvalid(query.kid));
  const { gpc, except, erasedAt, withheld } = toPrincipalRow(row);
  const isKnown = row.principal !== null;
  return {
    erased: isKnown && erasedAt !== null,
    gpc: isKnown && isOptedOut(gpc, except, query.purpose),
    withheld: isKnown && parsePurposes(withheld).includes(query.purpose),
    event,
    head: { seq: Number(row.size) - 1, hash: row.head_hash },
  };
}

/** Reads states, principals and the head of the log in one statement, so that they are of one moment. */
async function readTenant({ read }: Database, kid: string, queries: readonly StateQuery[]) {
  const rows = queries.map(({ principal, purpose }): Bindings => [principal, purpose]);
  const stateRows = await runAsked<Row>(
    read,
    { columns: COLUMNS, rows, sql: select(read) },
    ...[kid, kid, kid, kid],
  );
  if (stateRows.length === 0) {
    const logFault = new ItemFault(await missingLogError(read, kid));
    return queries.map(() => logFault);
  }
  const members = queries.map((): (PrincipalState | ItemFault)[] => []);
  for (const row of stateRows) {
    const i = Number(row.i);
    members[i]?.push(toState(row, queries[i] as StateQuery));
  }
  return members.map((states) => {
    const fault = states.find((state) => state instanceof ItemFault);
    const [first, ...rest] = states as PrincipalState[];
    return fault ?? joinStates(first as PrincipalState, ...rest);
  });
}

/** On PostgreSQL a batch has one tenant; on SQLite it may have several, with one statement each. */
async function readBatch(database: Database, queries: readonly StateQuery[]) {
  const states = new Map<StateQuery, PrincipalState | ItemFault>();
  for (const kid of new Set(queries.map((query) => query.kid))) {
    const tenantQueries = queries.filter((query) => query.kid === kid);
    for (const [i, state] of (await readTenant(database, kid, tenantQueries)).entries())
      states.set(tenantQueries[i] as StateQuery, state);
  }
  return queries.map((query) => states.get(query) as PrincipalState | ItemFault);
}

/**
 * Makes one keyed read for all waiting checks: the state, the principal and the head of the log in one row.
 * It always reads the database, so that the next read on every node sees an answered withdrawal.
 */
export interface ConsentStateReader {
  /** Concurrent reads share a statement. @throws {ConsentStateInvalid} where a row does not carry its MAC */
  read(query: StateQuery): Promise<PrincipalState>;
  /** One snapshot, for queries of one tenant. @throws {ConsentStateInvalid} */
  readAll(queries: readonly StateQuery[]): Promise<readonly PrincipalState[]>;
}

export function createConsentStateReader(database: Database): ConsentStateReader {
  const group = createGroup<StateQuery, PrincipalState>({
    name: 'decide',
    run: (queries) => readBatch(database, queries),
    maxBatch: MAX_BATCH,
    maxWaiting: MAX_WAITING,
    ...oneTenant(database.kind, ({ kid }: StateQuery) => kid),
  });
  return {
    read: (query) => group.submit(query),
    async readAll(queries) {
      const states = await readBatch(database, queries);
      return states.map((state) => {
        if (state instanceof ItemFault) throw state.reason;
        return state;
      });
    },
  };
}

export const knowsPrincipal = async ({ read }: Database, kid: string, principal: string): Promise<boolean> =>
  (await read('consent_principals').where({ kid, principal }).first()) !== undefined;

/** True for a principal that gpd knows and that was not erased since its last grant. */
export const isPresent = async ({ read }: Database, kid: string, principal: string): Promise<boolean> =>
  (await read('consent_principals').where({ kid, principal }).whereNull('erased_at').first()) !== undefined;
