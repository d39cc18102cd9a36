import { countInvalid } from '../../consent/state-mac-store.ts';
import { listPolicies, type TermsOf, termsFit } from '../../consent/terms-store.ts';
import type { Database } from '../../db/db.ts';
import { readPolicies } from '../../ingest/policy-store.ts';
import { type Generation, isOwnPublicKey } from '../../keys/generation.ts';
import type { MasterKey } from '../../keys/master-key.ts';
import { LEDGER_SECRET, SYMMETRIC_SECRET, tenantSecretContext } from '../../keys/master-key.ts';
import { leafHash } from '../../ledger/merkle.ts';
import { makeNoteSigner } from '../../ledger/note.ts';
import { DAY } from '../../lib/clock.ts';
import { Unavailable } from '../../lib/errors.ts';
import { unanchoredSince } from '../../log/anchors.ts';
import type { CheckpointBook } from '../../log/checkpoint-files.ts';
import { baseOf, NotSigned } from '../../log/checkpoint-service.ts';
import type { EntryMacs } from '../../log/entries.ts';
import { checkNewEntries, type LogHead, readHead } from '../../log/entries.ts';
import { oldestDueDecision } from '../../rights/retention/store.ts';
import { readVisits } from '../../rights/tally-store.ts';
import { makeApiKeyStore } from '../../tenants/api-key-store.ts';
import { makeSealKeyStore } from '../../tenants/seal-keys.ts';
import type { StoredTenant } from '../../tenants/tenant-store.ts';
import { makeTenantStore, readTenantSecret } from '../../tenants/tenant-store.ts';
import { readLogEnd } from './inspect-store.ts';

const IDLE_MS = 180 * DAY;
const NOTICES = ['notice.controller', 'notice.contact', 'notice.authority'] as const;

/** What checkpoints are compared with; null: the master key does not open the database. */
export interface DoctorKeys {
  readonly masterKey: MasterKey;
  readonly book: CheckpointBook;
}

/** What is trusted besides the database. */
export interface DoctorTrust {
  readonly macs: ReadonlyMap<string, TermsOf>;
  readonly keys: DoctorKeys | null;
}

/** Why the next checkpoint would not be signed. */
async function checkpointProblem(
  database: Database,
  kid: string,
  head: LogHead,
  { masterKey, book }: DoctorKeys,
): Promise<string | null> {
  const wrapped = await readTenantSecret(database, kid, LEDGER_SECRET);
  if (wrapped === null) return 'the key of the log is missing';
  const seed = masterKey.unwrap(wrapped, tenantSecretContext(kid, LEDGER_SECRET));
  try {
    const base = await baseOf({ database, book }, kid, makeNoteSigner(head.origin, seed));
    return base && base.head.size > 0 && !base.head.checkpoint ? 'there is no checkpoint' : null;
  } catch (error) {
    if (error instanceof NotSigned) return error.why;
    throw error;
  }
}

/** What is wrong with the entries that no checkpoint covers yet; null: nothing. */
async function newEntryProblem(
  database: Database,
  kid: string,
  { vkey, size: to }: LogHead,
  { book, macs, now }: Pick<DoctorKeys, 'book'> & { readonly macs: EntryMacs; readonly now: number },
): Promise<string | null> {
  const last = await book.last(vkey).catch(() => null);
  const [problem] = await checkNewEntries(database, kid, { from: last?.size ?? 0, to, macs, now });
  return problem ? `${problem.code}: ${problem.what}` : null;
}

/** The ends of the log; `gpd consent verify` recomputes all of it. */
async function gatherLog(database: Database, kid: string, now: number, { keys, macs: all }: DoctorTrust) {
  const macs = all.get(kid)?.stateMac;
  // Of one moment: a running server appends meanwhile.
  const [head, { entries, last, headHash }] = await database.snapshot(async (read) => [
    await readHead({ read }, kid).catch(() => null),
    await readLogEnd({ read }, kid),
  ]);
  if (!head) return null;
  return {
    origin: head.origin,
    entries,
    size: head.size,
    /** Whether the last entry's hash equals the stored one and the head's. */
    lastFits: last !== null && leafHash(Buffer.from(last.entry)).toString('hex') === last.hash,
    headFits: last !== null && last.seq === head.size - 1 && headHash === last.hash,
    /** Why the next checkpoint would not be signed; null: it would. */
    newEntryProblem: keys && macs ? await newEntryProblem(database, kid, head, { ...keys, macs, now }) : null,
    checkpointProblem: keys && (await checkpointProblem(database, kid, head, keys)),
    /** The oldest decision of a whole hour that is not anchored. */
    unanchoredSince: await unanchoredSince(database, kid, now),
  };
}

function keyFacts(keys: readonly Generation[], now: number, masterKey: MasterKey | undefined) {
  const published = keys.filter(({ state }) => state === 'published');
  const retiring = keys.filter(({ state, retiresAt }) => state === 'retiring' && (retiresAt ?? 0) < now);
  return {
    publishedKeys: published.length,
    publishedAt: published[0]?.publishedAt ?? null,
    stagedAt: keys.find(({ state }) => state === 'staged')?.createdAt ?? null,
    /** Generations whose public key is not that of their private key. */
    foreignKeys: keys
      .filter((key) => masterKey && !isOwnPublicKey(masterKey, key))
      .map((key) => key.generation),
    /** Retiring generations whose grace has been over since then. */
    overdueKeys: retiring.map(({ retiresAt }) => retiresAt ?? 0),
  };
}

/** False too where the key of the tenant does not open. */
async function isForged(database: Database, terms: TermsOf | undefined): Promise<boolean> {
  if (!terms) return false;
  return (
    !(await database.snapshot((read) => termsFit(read, terms))) || (await countInvalid(database, terms)) > 0
  );
}

async function gatherTenant(database: Database, tenant: StoredTenant, now: number, trusted: DoctorTrust) {
  const { kid, settings } = tenant;
  const apiKeys = await makeApiKeyStore(database).list(kid);
  const active = apiKeys.filter((key) => key.revokedAt === null);
  const idle = active.filter(({ createdAt, lastUsedOn }) => {
    return now - (lastUsedOn === null ? createdAt : Date.parse(lastUsedOn)) > IDLE_MS;
  });
  const purposes = await makeTenantStore(database).purposes(kid);
  const policies = await readPolicies(database, kid).catch(() => null);
  return {
    kid,
    origins: settings.origins,
    wantsMail: settings['notify.email'].length > 0,
    rpId: settings['attest.rpId'],
    ...keyFacts(await makeSealKeyStore(database).list(kid), now, trusted.keys?.masterKey),
    symmetric: (await readTenantSecret(database, kid, SYMMETRIC_SECRET)) !== null,
    activeApiKeys: active.length,
    /** Names of active keys that nobody used for half a year. */
    idleApiKeys: idle.map(({ name }) => name),
    purposes: purposes.map(({ id }) => id),
    /** Global Privacy Control refuses device identification. */
    optsOut: purposes.some(({ id, gpc }) => id === 'device-identification' && gpc === 'opt-out'),
    /** Of the last 30 days. */
    visits: await readVisits(database, kid, now - 30 * DAY),
    basis: settings['consent.basis'],
    consentPolicies: (await listPolicies(database, kid)).length,
    emptyNotices: NOTICES.filter((name) => settings[name] === ''),
    badPolicy: policies === null,
    retentionDays: settings['retention.days'],
    /** Of those that neither an open contest nor a hold keeps. */
    oldestDecisionAt: await oldestDueDecision(database, kid, now),
    /** A row that consent is decided from does not carry its MAC. */
    stateForged: await isForged(database, trusted.macs.get(kid)),
    log: await gatherLog(database, kid, now, trusted),
  };
}

export type TenantFacts = Awaited<ReturnType<typeof gatherTenant>>;

/** A tenant of whom something cannot be read is named, and hides no other. */
export async function gatherTenants(database: Database, now: number, trusted: DoctorTrust) {
  const store = makeTenantStore(database);
  const tenants: TenantFacts[] = [];
  const damagedTenants: string[] = [];
  for (const kid of await store.kids()) {
    try {
      const tenant = await store.get(kid);
      const facts = tenant && (await gatherTenant(database, tenant, now, trusted));
      // Without a log: a tenant that was removed meanwhile has none.
      if (facts && (facts.log !== null || (await store.get(kid)))) tenants.push(facts);
    } catch (error) {
      if (error instanceof Unavailable) throw error;
      damagedTenants.push(kid);
    }
  }
  return { tenants, damagedTenants };
}
