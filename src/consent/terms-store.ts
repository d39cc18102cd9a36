import type { Knex } from 'knex';
import { writeAct } from '../audit/audit-store.ts';
import type { Database, Reader } from '../db/engine.ts';
import { bumpTenant, ConsentStateInvalid } from '../db/meta-store.ts';
import { cellOf, requireNone } from '../db/sql.ts';
import { type EntryDetail, impersonalEntry } from '../ledger/entries.ts';
import type { Act } from '../lib/act.ts';
import { sha256 } from '../lib/crypto.ts';
import { type AppendedEntry, appendOne } from '../log/entries-store.ts';
import type { ConsentChoice } from '../schema/consent.ts';
import { type ConsentPolicy, definedBy, type Purpose } from '../tenants/purposes.ts';
import { isMacValid, type StateMac } from '../tenants/state-mac.ts';
import {
  type ConsentPolicyRow,
  type PurposeRow,
  purposeToRow,
  rowToConsentPolicy,
  rowToPurpose,
} from '../tenants/tenant-store.ts';
import { type StateColumns, toStateRow } from './state-store.ts';

/**
 * Stores purposes and policies. Each change is an entry of the log, and running servers see it within 5 s.
 */

/** The tenant of the terms, with the key of their MACs. */
export interface TermsOf {
  readonly kid: string;
  readonly stateMac: StateMac;
}

async function termsMac(tx: Knex, { kid, stateMac }: TermsOf): Promise<string> {
  const purposes = await tx<PurposeRow>('purposes').where({ kid });
  const policies = await tx<ConsentPolicyRow>('consent_policies').where({ kid });
  return stateMac.ofTerms({
    purposes: (purposes as PurposeRow[]).map(rowToPurpose),
    policies: (policies as ConsentPolicyRow[]).map(rowToConsentPolicy),
  });
}

/** Call it after every change of the terms, in the same transaction. */
export async function macTerms(tx: Knex.Transaction, tenant: TermsOf): Promise<void> {
  const { kid } = tenant;
  await tx('tenants')
    .where({ kid })
    .update({ terms_mac: await termsMac(tx, tenant) });
}

/** True if the stored terms have their MAC. */
export async function areTermsAuthentic(read: Knex, tenant: TermsOf): Promise<boolean> {
  const mac = await cellOf<string | null>(read('tenants').where({ kid: tenant.kid }), 'terms_mac');
  return isMacValid(mac, await termsMac(read, tenant));
}

/** A change on top of forged terms would make them valid. @throws {ConsentStateInvalid} */
async function requireTerms(tx: Knex.Transaction, tenant: TermsOf): Promise<void> {
  if (!(await areTermsAuthentic(tx, tenant))) throw new ConsentStateInvalid(tenant.kid);
}

/** A purpose, and whether its writer calls the change material. */
export interface PurposeChange extends Purpose {
  /** False if nobody has to be asked again. */
  readonly material?: boolean | undefined;
}

/** @param by the person who calls a change not material */
export async function definePurpose(
  tx: Knex.Transaction,
  { kid, stateMac }: TermsOf,
  { material = true, ...purpose }: PurposeChange,
  by: Pick<Act, 'at' | 'ref'>,
) {
  const { banner, ...words } = purpose;
  const { id } = words;
  // The member is left out where the banner asks, so that such entries keep their bytes (ADR 0099).
  const body = { ...words, ...(!banner && { banner }), ...(!material && { material, by: by.ref }) };
  const entry = impersonalEntry({ type: 'purpose.defined', at: by.at, purpose: id }, body);
  const appended = await appendOne(tx, kid, entry, stateMac);
  // Read after the append, which locks the head, so that simultaneous changes follow each other.
  const row = await tx<PurposeRow>('purposes').where({ kid, id }).first();
  const before = row && rowToPurpose(row as PurposeRow);
  const defined = purposeToRow(kid, definedBy(appended.seq, purpose, before, material));
  await tx('purposes').insert(defined).onConflict(['kid', 'id']).merge();
  return appended;
}

/** @returns null for an unknown tenant */
export function savePurposes(
  database: Database,
  tenant: TermsOf,
  purposes: readonly PurposeChange[],
  by: Act,
) {
  const { kid } = tenant;
  return database.transaction(async (tx) => {
    if (!(await bumpTenant(tx, kid))) return null;
    await requireTerms(tx, tenant);
    const appended: AppendedEntry[] = [];
    for (const purpose of purposes) {
      appended.push(await definePurpose(tx, tenant, purpose, by));
      const { id, gpc, ttlDays, banner, material = true } = purpose;
      const detail = {
        purpose: id,
        gpc,
        ttlDays,
        ...(!banner && { banner }),
        ...(!material && { material }),
      };
      await writeAct(tx, kid, by, 'purpose.defined', detail);
    }
    await macTerms(tx, tenant);
    return appended;
  });
}

/**
 * Removes a purpose: nobody is asked for it any longer, and a check answers `unknown-purpose`. Choices stay
 * in the log, but do not count if the purpose is defined again.
 * @returns false if there was no such purpose
 */
export function removePurpose(database: Database, tenant: TermsOf, id: string, by: Act): Promise<boolean> {
  const { kid, stateMac } = tenant;
  return database.transaction(async (tx) => {
    if (!(await bumpTenant(tx, kid))) return false;
    await requireTerms(tx, tenant);
    const purpose = tx('purposes').where({ kid, id });
    const deletedCount = (await purpose.clone().delete()) as unknown as number;
    await requireNone(tx, purpose, `purpose ${id} is not removed`);
    if (deletedCount === 0) return false;
    const head = { type: 'purpose.defined', at: by.at, purpose: id } as const;
    await appendOne(tx, kid, impersonalEntry(head, { id, removed: true }), stateMac);
    await writeAct(tx, kid, by, 'purpose.defined', { purpose: id, removed: true });
    await macTerms(tx, tenant);
    return true;
  });
}

/** Publishes the next version. @returns null for an unknown tenant */
export function publishPolicy(
  database: Database,
  tenant: TermsOf,
  policy: { readonly text: string; readonly material: boolean },
  by: Act,
): Promise<(ConsentPolicy & AppendedEntry) | null> {
  const { kid } = tenant;
  return database.transaction(async (tx) => {
    if (!(await bumpTenant(tx, kid))) return null;
    await requireTerms(tx, tenant);
    const newest = tx('consent_policies').where({ kid }).orderBy('version', 'desc');
    const version = Number((await cellOf<number>(newest, 'version')) ?? 0) + 1;
    const digest = sha256(policy.text).toString('hex');
    const { text, material } = policy;
    const now = by.at;
    await tx('consent_policies').insert({ kid, version, text, sha256: digest, material, published_at: now });
    await macTerms(tx, tenant);
    const body = { version, sha256: digest, material };
    const entry = impersonalEntry({ type: 'policy.published', at: now, purpose: null }, body);
    const appended = await appendOne(tx, kid, entry, tenant.stateMac);
    await writeAct(tx, kid, by, 'policy.published', { version, material });
    return { version, sha256: digest, material, publishedAt: now, ...appended };
  });
}

export async function listPolicies(database: Database, kid: string) {
  const rows = await database
    .read<ConsentPolicyRow & { text: string }>('consent_policies')
    .where({ kid })
    .orderBy('version');
  return rows.map((row) => ({ ...rowToConsentPolicy(row), text: row.text }));
}

export async function listState(database: Reader, kid: string, principals: readonly string[]) {
  const rows: readonly (StateColumns & { readonly purpose: string })[] = await database
    .read('consent_state')
    .where({ kid })
    .whereIn('principal', principals)
    .orderBy(['purpose', 'seq']);
  return rows.map((row) => ({ purpose: row.purpose, ...toStateRow(row) }));
}

export interface CommitmentRow {
  readonly kid: string;
  readonly seq: number;
  readonly principal: string;
  readonly purpose: string;
  readonly choice: ConsentChoice | 'doubted' | 'linked';
  readonly at: number;
  readonly salt: string;
  readonly detail: string;
}

function rowToEvent<Choice>({
  principal,
  purpose,
  choice,
  at,
  salt,
  ...row
}: Omit<CommitmentRow, 'choice'> & { readonly choice: Choice }) {
  // A doubt has no policy and does not expire.
  const emptyDetail = { policyVersion: null, gpc: false, expiresAt: null };
  const detail = { ...emptyDetail, ...(JSON.parse(row.detail) as EntryDetail) };
  return { seq: Number(row.seq), principal, purpose, choice, at, salt, detail };
}

/** Choices and doubts of these principals, newest first, before `cursor`. */
export async function listHistory(
  database: Reader,
  kid: string,
  principals: readonly string[],
  page: { readonly before: number | null; readonly limit: number },
) {
  const query = database
    .read<CommitmentRow>('consent_openings')
    .where({ kid })
    .whereIn('principal', principals)
    .whereNot('choice', 'linked');
  if (page.before !== null) query.where('seq', '<', page.before);
  const rows = await query.orderBy('seq', 'desc').limit(page.limit);
  return (rows as (CommitmentRow & { readonly choice: ConsentChoice | 'doubted' })[]).map((row) =>
    rowToEvent(row),
  );
}

/** Reads the opening of one entry with its principal; null: the entry is not personal, or was erased. */
export async function findOpening(database: Database, kid: string, seq: number) {
  const row = await database.read<CommitmentRow>('consent_openings').where({ kid, seq }).first();
  return row ? rowToEvent(row as CommitmentRow) : null;
}
