import { randomBytes } from 'node:crypto';
import type { Database } from '../db/engine.ts';
import { createGroup } from '../db/group-commit.ts';
import { ConsentStateInvalid } from '../db/meta-store.ts';
import { type Bindings, countOf, insertMany, runSql, type Transaction } from '../db/sql.ts';
import { createMasterKey, principalIdContext, principalKeyContext } from '../keys/master-key.ts';
import { type DoubtDetail, personalEntry } from '../ledger/entries.ts';
import { TenantGone } from '../lib/errors.ts';
import { appendEntries, tryLockHead } from '../log/entries-store.ts';
import type { VisitorClass } from '../schema/responses.ts';
import { isMacValid, type StateRow } from '../tenants/state-mac.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { type ConsentEvent, GIVEN_BY, isDoubted, type ProofRef } from './decide.ts';
import { type ConsentStateReader, type StateColumns, toStateRow } from './state-store.ts';

/** Records the doubt that a verdict casts on the grant its bundle claimed (contract-2 section 18). */

interface Deps {
  readonly reader: ConsentStateReader;
  readonly marker: Marker;
  readonly tenantOf: (kid: string) => Tenant;
  readonly onFault: (error: unknown) => void;
}

/** Only the client whose grant was answered knows the proof's hash: a bundle without it is about no grant. */
export interface GrantClaim {
  readonly kid: string;
  readonly principalId: string;
  readonly purpose: string;
  readonly proof: ProofRef;
}

export interface Grants {
  /** The grant that a bundle names. Null: the proof is not of the last event, or that is no grant. */
  find(claim: GrantClaim): Promise<ConsentEvent | null>;
  /**
   * Marks who gave it. The verdict is recorded: it is answered whatever comes of this.
   * @returns whether the person is to be asked again
   */
  note(claim: GrantClaim, grant: ConsentEvent, by: Judged): Promise<boolean>;
  /** Resolves when nothing is being marked any more. */
  idle(): Promise<void>;
}

interface Judged {
  readonly class: VisitorClass;
  readonly at: number;
}

export function createGrants({ reader, marker, tenantOf, onFault }: Deps): Grants {
  return {
    async find({ kid, principalId, purpose, proof }) {
      try {
        const { refOf, stateMac: mac } = tenantOf(kid);
        const principal = refOf(principalId);
        const { event } = await reader.read({ kid, principal, purpose, mac });
        const isSameGrant = event?.seq === proof.seq && event.hash === proof.hash;
        return isSameGrant && event.choice === 'granted' ? event : null;
      } catch (error) {
        if (error instanceof ConsentStateInvalid || error instanceof TenantGone) return null;
        throw error;
      }
    },
    async note({ kid, principalId }, grant, { class: by, at }) {
      if (by === 'unknown') return false;
      const tenant = tenantOf(kid);
      const principal = tenant.refOf(principalId);
      const mark = { tenant, principal, seq: grant.seq, principalId, at };
      if (by === 'human' ? grant.given === null : grant.doubtSeq === null)
        await marker.submit({ ...mark, detail: { class: by, source: 'ingest' } }).catch(onFault);
      return by === 'human' && isDoubted(grant) && tenant.settings['consent.byAutomation'] === 'ask-again';
    },
    idle: () => marker.idle(),
  };
}

const SALT_BYTES = 16;

type Marked = Pick<Tenant, 'kid' | 'since' | 'principalWrap' | 'wrapper' | 'stateMac'>;

export interface Mark {
  readonly tenant: Marked;
  readonly principal: string;
  /** The entry of the grant that the verdict used. */
  readonly seq: number;
  readonly detail: DoubtDetail;
  /** Null to take it from the entry that began the doubt. */
  readonly principalId: string | null;
  readonly at: number;
}

/** True for a grant without a doubt yet; only a ruling ends a doubt. */
function isDue({ detail }: Mark, state: StateRow): boolean {
  if (detail.source === 'contest') return isDoubted(state);
  return detail.class === 'human' ? state.given === null : state.doubtSeq === null;
}

/** All purposes that the same write granted, because one click gave them. */
async function dueRows(tx: Transaction, mark: Mark): Promise<readonly (StateRow & { purpose: string })[]> {
  const { tenant, principal, seq } = mark;
  const ofPrincipal = 'kid = ? AND principal = ?';
  const sql = `SELECT * FROM consent_state WHERE ${ofPrincipal} AND choice = 'granted'
    AND at = (SELECT at FROM consent_state WHERE ${ofPrincipal} AND seq = ?) ORDER BY seq`;
  const bindings = [tenant.kid, principal, tenant.kid, principal, seq];
  const rows = await runSql<StateColumns & { purpose: string; mac: string }>(tx, sql, bindings);
  return rows.flatMap(({ purpose, mac, ...columns }) => {
    const state = toStateRow(columns);
    const isAuthentic = isMacValid(mac, tenant.stateMac.ofState(principal, purpose, state));
    return isAuthentic && isDue(mark, state) ? [{ purpose, ...state }] : [];
  });
}

/** Reads the key of the person for the entries; null: the principal was erased. */
async function readSubjectKey(tx: Transaction, { tenant, principal, principalId }: Mark) {
  const { kid, wrapper } = tenant;
  const sql = `SELECT p.wrapped_key AS wrapped, (SELECT o.principal_id FROM consent_openings o WHERE o.kid = p.kid
    AND o.principal = p.principal AND o.choice = 'doubted' ORDER BY o.seq DESC LIMIT 1) AS known
    FROM consent_principals p WHERE p.kid = ? AND p.principal = ?`;
  const [row] = await runSql<{ wrapped: string | null; known: string | null }>(tx, sql, [kid, principal]);
  if (!row?.wrapped) return null;
  const context = principalIdContext(kid, principal);
  const id = principalId ?? wrapper.unwrap(row.known ?? '', context).toString();
  const keys = createMasterKey(tenant.principalWrap, randomBytes);
  const key = keys.unwrap(row.wrapped, principalKeyContext(kid, principal));
  return { key, principalId: id, wrappedId: wrapper.wrap(Buffer.from(id), context) };
}

/** @returns the places of the entries; null if the principal was erased */
async function tellLog(tx: Transaction, mark: Mark, purposes: readonly string[]) {
  const { tenant, principal, detail, at } = mark;
  const { kid } = tenant;
  const subject = await readSubjectKey(tx, mark);
  if (!subject) return null;
  const salts = purposes.map(() => randomBytes(SALT_BYTES));
  const entries = salts.map((salt, i) =>
    personalEntry({ type: 'consent.doubted', at, purpose: purposes[i] ?? '' }, { ...subject, salt, detail }),
  );
  const seqs = (await appendEntries(tx, kid, entries)).map(({ seq }) => seq);
  const rows = salts.map((bytes, i): Bindings => {
    const [salt, detailJson] = [bytes.toString('base64url'), JSON.stringify(detail)];
    return [
      kid,
      seqs[i] ?? 0,
      principal,
      purposes[i] ?? '',
      'doubted',
      at,
      salt,
      detailJson,
      subject.wrappedId,
    ];
  });
  const columns = 'kid, seq, principal, purpose, choice, at, salt, detail, principal_id';
  await insertMany(tx, `INSERT INTO consent_openings (${columns})`, rows);
  return seqs;
}

/** The caller has locked the head of the log, so that an answered withdrawal is not changed. */
async function markWithin(tx: Transaction, mark: Mark): Promise<void> {
  const { tenant, principal, detail } = mark;
  const rows = await dueRows(tx, mark);
  if (rows.length === 0) return;
  const isTold = detail.class !== 'human' || detail.source === 'contest';
  const purposes = rows.map(({ purpose }) => purpose);
  const seqs = isTold ? await tellLog(tx, mark, purposes) : [];
  if (seqs === null) return;
  for (const [i, { purpose, ...was }] of rows.entries()) {
    const state = { ...was, given: GIVEN_BY[detail.class], doubtSeq: seqs[i] ?? was.doubtSeq };
    const { given, doubtSeq } = state;
    const mac = tenant.stateMac.ofState(principal, purpose, state);
    const sql = 'UPDATE consent_state SET given = ?, doubt_seq = ?, mac = ?';
    const stateKey = 'WHERE kid = ? AND principal = ? AND purpose = ?';
    await runSql(tx, `${sql} ${stateKey}`, [given, doubtSeq, mac, tenant.kid, principal, purpose]);
  }
}

/** Clears the doubt after a review found the verdict wrong. The caller has locked the head of the log. */
export async function clearDoubt(tx: Transaction, tenant: Marked, requestId: string, at: number) {
  const { kid } = tenant;
  const verdictQuery = 'SELECT verdict FROM decisions WHERE kid = ? AND request_id = ?';
  const [decision] = await runSql<{ verdict: string }>(tx, verdictQuery, [kid, requestId]);
  const { grantSeq: seq } = JSON.parse(decision?.verdict ?? '{}') as { readonly grantSeq?: number };
  if (seq === undefined) return;
  const principalQuery =
    'SELECT principal FROM consent_state WHERE kid = ? AND seq = ? AND doubt_seq IS NOT NULL';
  const [row] = await runSql<{ principal: string }>(tx, principalQuery, [kid, seq]);
  const detail = { class: 'human', source: 'contest' } as const;
  if (row) await markWithin(tx, { tenant, ...row, seq, detail, principalId: null, at });
}

const doubtsOf = (database: Database, kid: string) =>
  database.read('consent_state').where({ kid }).whereNotNull('doubt_seq');

/** Counts the grants that machines gave, by the kind of machine. */
export const countDoubts = async (database: Database, kid: string) => ({
  agent: await countOf(doubtsOf(database, kid).where({ given: 'agent' })),
  automation: await countOf(doubtsOf(database, kid).where({ given: 'automation' })),
});

type DoubtedGrant = Pick<StateColumns, 'seq' | 'doubt_seq' | 'at'> & { readonly purpose: string };

/** The latest of these grants; they name nobody. */
export const listDoubts = (database: Database, kid: string, given: 'agent' | 'automation', limit: number) =>
  doubtsOf(database, kid)
    .where({ given })
    .orderBy('doubt_seq', 'desc')
    .limit(limit)
    .select('purpose', 'seq', 'doubt_seq', 'at') as Promise<DoubtedGrant[]>;

/**
 * Records who gave a grant (contract-2 section 18, ADR 0052), only while the grant is the last event. Waiting
 * marks of one tenant share a transaction.
 */
export function createMarker(database: Database) {
  async function run(marks: readonly Mark[]): Promise<undefined[]> {
    const kid = marks[0]?.tenant.kid ?? '';
    await database.transaction(async (tx) => {
      const head = await tryLockHead(tx, kid);
      if (head instanceof Error) return;
      for (const mark of marks) if (mark.tenant.since === Number(head.since)) await markWithin(tx, mark);
    });
    return marks.map(() => undefined);
  }
  const keyOf = ({ tenant }: Mark): string => tenant.kid;
  return createGroup<Mark, undefined>({ name: 'doubt', run, maxBatch: 200, maxWaiting: 10_000, keyOf });
}

export type Marker = ReturnType<typeof createMarker>;
