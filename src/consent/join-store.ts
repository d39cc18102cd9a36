import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import { writeAudit } from '../audit/audit-store.ts';
import type { Database } from '../db/engine.ts';
import { ConsentStateInvalid, reportInvalidState } from '../db/meta-store.ts';
import { byIndex, cellOf, countOf, insertMany, runSql, type Transaction } from '../db/sql.ts';
import { createMasterKey, principalKeyContext } from '../keys/master-key.ts';
import { personalEntry } from '../ledger/entries.ts';
import { Refusal } from '../lib/errors.ts';
import { appendEntries } from '../log/entries-store.ts';
import { withHead } from '../log/head-queue-store.ts';
import { webhookRows } from '../notify/notify-service.ts';
import { enqueue } from '../notify/outbox-store.ts';
import { isMacValid, type PrincipalRow, type StateMac, type StateRow } from '../tenants/state-mac.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { newerEvent } from './decide.ts';
import {
  type PrincipalColumns,
  parsePurposes,
  type StateColumns,
  toPrincipalRow,
  toStateRow,
} from './state-store.ts';

/**
 * Joins a browser with the account of the person who logged in there (contract-2 section 20, ADR 0094). Each
 * principal keeps its own rows and entries; a check reads those of all that are joined. The erasure of one
 * ends its joins.
 */

/** A check reads a row for each: nobody may make the checks of their account as slow as they like. */
const MAX_BROWSERS = 1000;
const KEY_BYTES = 32;
const SALT_BYTES = 16;
const LINKED_DETAIL = { policyVersion: null, gpc: false, source: 'session', expiresAt: null } as const;

interface Named {
  readonly ref: string;
  readonly id: string;
}

interface StoredPrincipal extends PrincipalColumns {
  readonly principal: string;
  readonly wrapped_key: string | null;
  readonly mac: string | null;
}

const NEW_ROW: PrincipalRow = { gpc: false, except: null, erasedAt: null, account: null, withheld: null };

/** @throws {ConsentStateInvalid} for a row that gpd did not write */
async function readPrincipal(tx: Transaction, { kid, stateMac }: Tenant, ref: string) {
  const sql = 'SELECT * FROM consent_principals WHERE kid = ? AND principal = ?';
  const [stored] = await runSql<StoredPrincipal>(tx, sql, [kid, ref]);
  if (!stored) return { row: NEW_ROW, wrapped: null };
  const row = toPrincipalRow(stored);
  if (!isMacValid(stored.mac, stateMac.ofPrincipal(ref, row))) throw new ConsentStateInvalid(kid);
  return { row, wrapped: stored.wrapped_key };
}

async function writePrincipal(
  tx: Transaction,
  { kid, stateMac }: Pick<Tenant, 'kid' | 'stateMac'>,
  ref: string,
  row: PrincipalRow,
  wrappedKey: string | null,
): Promise<void> {
  const { gpc, except, erasedAt, account, withheld } = row;
  await insertMany(
    tx,
    'INSERT INTO consent_principals (kid, principal, wrapped_key, gpc, gpc_except, erased_at, account, withheld, mac)',
    [[kid, ref, wrappedKey, gpc, except, erasedAt, account, withheld, stateMac.ofPrincipal(ref, row)]],
    `ON CONFLICT (kid, principal) DO UPDATE SET wrapped_key = excluded.wrapped_key, gpc = excluded.gpc, gpc_except = excluded.gpc_except,
      account = excluded.account, withheld = excluded.withheld, mac = excluded.mac`,
  );
}

/** The key that the principal's entries commit under; a new one for a principal that has none yet. */
function openKey({ kid, principalWrap }: Tenant, ref: string, wrapped: string | null) {
  const wrapper = createMasterKey(principalWrap, randomBytes);
  const context = principalKeyContext(kid, ref);
  const key = wrapped === null ? randomBytes(KEY_BYTES) : wrapper.unwrap(wrapped, context);
  return { key, wrapped: wrapped ?? wrapper.wrap(key, context) };
}

/** Appends `subject.linked`, and keeps what opens it. */
async function tellLog(
  tx: Transaction,
  tenant: Tenant,
  account: Named,
  browser: Named,
  key: Buffer,
  now: number,
) {
  const { kid, stateMac } = tenant;
  const salt = randomBytes(SALT_BYTES);
  const opening = { key, salt, principalId: browser.id, detail: LINKED_DETAIL };
  const entry = personalEntry({ type: 'subject.linked', at: now, purpose: null }, opening);
  const [appended] = await appendEntries(tx, kid, [entry], { macs: stateMac });
  const seq = appended?.seq ?? 0;
  await insertMany(
    tx,
    'INSERT INTO consent_openings (kid, seq, principal, purpose, choice, at, salt, detail)',
    [[kid, seq, browser.ref, '', 'linked', now, salt.toString('base64url'), JSON.stringify(LINKED_DETAIL)]],
  );
  const payload = { subject: account.ref, joined: browser.ref, seq };
  const rows = webhookRows(tenant, 'subject.linked', payload).map((row) => ({
    ...row,
    kid,
    principal: browser.ref,
    requestId: null,
    at: now,
  }));
  await enqueue(tx, rows);
}

/**
 * @returns when they were joined, and whether it was now
 * @throws {Refusal} `claimed-by-another` where the browser is joined with another account
 */
export function joinPrincipals(
  database: Database,
  tenant: Tenant,
  {
    account,
    browser,
    now,
    actorRef,
  }: { readonly account: Named; readonly browser: Named; readonly now: number; readonly actorRef: string },
) {
  const { kid } = tenant;
  return withHead(database, kid, async (tx) => {
    const [known, other] = [
      await readPrincipal(tx, tenant, account.ref),
      await readPrincipal(tx, tenant, browser.ref),
    ];
    const group = known.row.account ?? account.ref;
    if (other.row.account === group) {
      const links = tx('consent_openings').where({ kid, principal: browser.ref, choice: 'linked' });
      return { joinedAt: Number(await cellOf<number>(links.orderBy('seq', 'desc'), 'at')), isNew: false };
    }
    if (other.row.account !== null) throw new Refusal('claimed-by-another');
    if ((await countOf(tx('consent_principals').where({ kid, account: group }))) > MAX_BROWSERS)
      throw new Refusal('invalid-request', { details: ['principalId: the account has too many browsers'] });
    const { key, wrapped } = openKey(tenant, browser.ref, other.wrapped);
    await tellLog(tx, tenant, account, browser, key, now);
    key.fill(0);
    await writePrincipal(tx, tenant, browser.ref, { ...other.row, account: group }, wrapped);
    const accountKey = openKey(tenant, account.ref, known.wrapped);
    accountKey.key.fill(0);
    await writePrincipal(tx, tenant, account.ref, { ...known.row, account: group }, accountKey.wrapped);
    const actor = { role: 'subject', ref: actorRef } as const;
    await writeAudit(tx, { kid, at: now, actor, action: 'principal.linked', object: actorRef, detail: {} });
    return { joinedAt: now, isNew: true };
  });
}

interface Member {
  readonly ref: string;
  readonly wrapped: string | null;
  readonly row: PrincipalRow;
  /** False for a row that gpd did not write. */
  readonly isAuthentic: boolean;
  readonly choices: ReadonlyMap<string, StateRow>;
  /** Purposes whose row gpd did not write: nobody knows what was chosen. */
  readonly forged: ReadonlySet<string>;
}

interface JoinEnd {
  readonly kid: string;
  readonly principal: string;
  readonly stateMac: StateMac;
}

async function readMember(tx: Transaction, { kid, stateMac }: JoinEnd, stored: StoredPrincipal) {
  const { principal: ref, wrapped_key: wrapped, mac } = stored;
  const row = toPrincipalRow(stored);
  const sql = 'SELECT * FROM consent_state WHERE kid = ? AND principal = ?';
  const stateRows = await runSql<StateColumns & { purpose: string; mac: string | null }>(tx, sql, [kid, ref]);
  const [choices, forged] = [new Map<string, StateRow>(), new Set<string>()];
  for (const { purpose, mac: stateRowMac, ...columns } of stateRows) {
    const choice = toStateRow(columns);
    if (isMacValid(stateRowMac, stateMac.ofState(ref, purpose, choice))) choices.set(purpose, choice);
    else forged.add(purpose);
  }
  const isAuthentic = isMacValid(mac, stateMac.ofPrincipal(ref, row));
  return { ref, wrapped, row, isAuthentic, choices, forged } satisfies Member;
}

async function readMembers(tx: Transaction, end: JoinEnd, account: string): Promise<Member[]> {
  const people = byIndex(tx, 'consent_principals', 'consent_principals_account');
  const sql = `SELECT * FROM ${people} WHERE kid = ? AND account = ?`;
  const members: Member[] = [];
  for (const stored of await runSql<StoredPrincipal>(tx, sql, [end.kid, account]))
    members.push(await readMember(tx, end, stored));
  return members;
}

/**
 * The purposes that `leaver` had refused for the grants of `member`. A forged row counts as a refusal,
 * because nobody knows what it hides.
 */
function refusedBy(leaver: Member, { choices, forged }: Member): readonly string[] {
  const purposes = new Set([...choices.keys(), ...forged, ...leaver.choices.keys(), ...leaver.forged]);
  return [...purposes].filter((purpose) => {
    if (!leaver.isAuthentic || leaver.forged.has(purpose)) return true;
    const [grant, refusal] = [choices.get(purpose), leaver.choices.get(purpose)];
    if (refusal === undefined || refusal.choice === 'granted') return false;
    const isGrantRefused = grant?.choice === 'granted' && newerEvent(refusal, grant) === refusal;
    return isGrantRefused || forged.has(purpose);
  });
}

/**
 * A refusal that was in force for a grant of this principal stays so when the other one is gone: nobody is
 * processed again because a record was erased.
 */
function keepRefusals(member: Member, leaver: Member): PrincipalRow {
  const { row } = member;
  // A row that gpd did not write may hide a signal.
  const other = leaver.isAuthentic ? leaver.row : { ...leaver.row, gpc: true, except: null, withheld: null };
  const withheld = new Set([
    ...parsePurposes(row.withheld),
    ...parsePurposes(other.withheld),
    ...refusedBy(leaver, member),
  ]);
  const excepts = [row, other].filter(({ gpc }) => gpc).map(({ except }) => parsePurposes(except));
  const except = excepts.reduce(
    (common, next) => common.filter((purpose) => next.includes(purpose)),
    excepts[0] ?? [],
  );
  return {
    ...row,
    gpc: row.gpc || other.gpc,
    except: except.length === 0 ? null : JSON.stringify([...except].sort()),
    withheld: withheld.size === 0 ? null : JSON.stringify([...withheld].sort()),
  };
}

/**
 * Ends the joins of a principal that is being erased, while its rows are still there: all of them where it is
 * the account. The head of the log has to be locked.
 */
export async function endJoins(tx: Knex.Transaction, end: JoinEnd): Promise<void> {
  const { kid, principal, stateMac } = end;
  const account = await cellOf<string | null>(tx('consent_principals').where({ kid, principal }), 'account');
  if (account == null) return;
  const members = await readMembers(tx, end, account);
  const isWhole = account === principal;
  for (const member of members.filter(({ ref }) => ref !== principal)) {
    // A row that gpd did not write keeps its invalid MAC, so that nobody believes it.
    if (!member.isAuthentic) continue;
    const leavers = members.filter(({ ref }) => ref !== member.ref && (isWhole || ref === principal));
    const row = leavers.reduce<PrincipalRow>(
      (result, leaver) => keepRefusals({ ...member, row: result }, leaver),
      member.row,
    );
    const next = { ...row, account: isWhole ? null : account };
    await writePrincipal(tx, { kid, stateMac }, member.ref, next, member.wrapped);
  }
}

/**
 * The references of all that are joined with this principal, its own among them. A row that gpd did not
 * write joins nobody: a writer of the database must not show one person the choices of another.
 */
export async function joinedRefs(
  { read }: Pick<Database, 'read'>,
  { kid, stateMac }: Pick<Tenant, 'kid' | 'stateMac'>,
  principal: string,
): Promise<readonly string[]> {
  const find = (table: string, column: 'principal' | 'account', ref: string) =>
    runSql<StoredPrincipal>(read, `SELECT * FROM ${table} WHERE kid = ? AND ${column} = ?`, [kid, ref]);
  const accountOf = (stored: StoredPrincipal): string | null => {
    const row = toPrincipalRow(stored);
    if (isMacValid(stored.mac, stateMac.ofPrincipal(stored.principal, row))) return row.account;
    reportInvalidState(kid);
    return null;
  };
  const [stored] = await find('consent_principals', 'principal', principal);
  const account = stored ? accountOf(stored) : null;
  if (account === null) return [principal];
  const byAccount = byIndex(read, 'consent_principals', 'consent_principals_account');
  const members = await find(byAccount, 'account', account);
  return members.filter((member) => accountOf(member) === account).map((member) => member.principal);
}
