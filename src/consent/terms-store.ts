import type { Knex } from 'knex';
import { writeAct } from '../audit/audit-store.ts';
import type { Database, Reader } from '../db/engine.ts';
import { bumpTenant, ConsentStateInvalid } from '../db/meta-store.ts';
import { cellOf, requireNone } from '../db/sql.ts';
import { impersonalEntry } from '../ledger/entries.ts';
import type { Act } from '../lib/act.ts';
import { sha256 } from '../lib/crypto.ts';
import { type AppendedEntry, appendOne } from '../log/entries-store.ts';
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
