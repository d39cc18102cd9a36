import { type AuditFilter, type AuditRow, listAudit, recordAudit } from '../audit/audit-store.ts';
import { bannerAnswer } from '../consent/banner-store.ts';
import { listDoubts } from '../consent/doubts-store.ts';
import { untranslatedLanguages } from '../consent/purpose-words.ts';
import { listPolicies } from '../consent/terms-store.ts';
import { verifyLog } from '../consent/verify-service.ts';
import { DAY } from '../lib/clock.ts';
import { pagesBy } from '../lib/collections.ts';
import { Refusal } from '../lib/errors.ts';
import { readHead } from '../log/entries-store.ts';
import { readVisits } from '../rights/tally-store.ts';
import { readKeyTraffic } from '../tenants/key-use-store.ts';
import { listSealKeys } from '../tenants/secrets-store.ts';
import { createTenantStore } from '../tenants/tenant-store.ts';
import { actorOf, type Context, type Staff } from './context-service.ts';

/** Reads the data of the ledger, keys, purposes and audit pages. */

export type GenerationView = Awaited<ReturnType<typeof readKeys>>[number];

const TRAFFIC_DAYS = 30;
/** The number of doubts that the ledger page lists. */
const DOUBTS = 100;
/** Entries; verifying more would take longer than a page can wait. */
const MAX_VERIFIED = 100_000;

export async function readKeys({ database, clock }: Context, { kid }: Staff) {
  const [generations, traffic] = await Promise.all([
    listSealKeys(database.read, kid),
    readKeyTraffic(database, kid, clock() - TRAFFIC_DAYS * DAY),
  ]);
  const trafficByGeneration = new Map(traffic.map((row) => [row.generation, row]));
  return generations.map(({ kid: _kid, publicKey: _public, wrappedPrivate: _wrapped, ...view }) => {
    const { bundles = 0, lastAt = null } = trafficByGeneration.get(view.generation) ?? {};
    return { ...view, bundles, lastAt };
  });
}

export async function readLedger(
  { database, log, tenantOf }: Context,
  { kid }: Staff,
  givenBy: 'agent' | 'automation' | null,
) {
  const checkpoint = await log.checkpoint(kid);
  const head = await readHead(database, kid);
  if (!head || checkpoint === null) return null;
  const { origin, vkey, size } = head;
  const isPublic = tenantOf(kid)?.settings['ledger.public'] ?? false;
  return {
    origin,
    vkey,
    size,
    root: head.root.toString('base64'),
    checkpoint,
    isPublic,
    doubts: givenBy && (await listDoubts(database, kid, givenBy, DOUBTS)),
  };
}

/** @returns null if the log has too many entries to verify while a page waits */
export async function verifyLedger({ database, readWhole, book, tenantOf, clock }: Context, staff: Staff) {
  const { kid } = staff;
  const head = await readHead(database, kid);
  if (head && head.size > MAX_VERIFIED) return null;
  const keys = tenantOf(kid);
  const trusted = keys && { book, keys };
  return readWhole(staff, () => verifyLog(database, kid, { trusted, now: clock() }));
}

export async function readTerms({ database, embed, clock, config, tenantOf }: Context, { kid }: Staff) {
  const texts = tenantOf(kid)?.settings['banner.texts'] ?? {};
  const [purposes, policies, { languages }, visits] = await Promise.all([
    createTenantStore(database).purposes(kid),
    listPolicies(database, kid),
    embed.manifest(),
    readVisits(database, kid, clock() - TRAFFIC_DAYS * DAY),
  ]);
  return {
    purposes: purposes.map((purpose) => ({
      ...purpose,
      untranslated: untranslatedLanguages(purpose, texts),
    })),
    policies: [...policies].reverse(),
    languages,
    visits: { ...visits, floor: config.k_anonymity_floor, days: TRAFFIC_DAYS },
  };
}

/** The preview shows the answer that the tenant's banner would get. Nothing is written to the ledger. */
export async function readBanner({ tenantOf, embed }: Context, { kid }: Staff, requestedLanguage: string) {
  const tenant = tenantOf(kid);
  const { languages } = await embed.manifest();
  if (!tenant) throw new Refusal('not-found');
  const language = languages.includes(requestedLanguage) ? requestedLanguage : 'en';
  const banner = { ...bannerAnswer(tenant, { language, gpc: false }), ...(await embed.wordsFor(language)) };
  return { language, banner };
}

/** Audit rows per read of an export. */
const PAGE = 1000;

export function readAudit({ database }: Context, { kid }: Staff, filter: AuditFilter, limit: number) {
  return listAudit(database, kid, filter, limit);
}

/**
 * Audits the export first, so that the exported rows include it.
 * @returns the rows that match, page by page
 */
export async function exportAudit(context: Context, staff: Staff, filter: AuditFilter) {
  const { action = null, from = null, to = null } = filter;
  await recordAudit(context.database, {
    kid: staff.kid,
    at: context.clock(),
    actor: actorOf(staff),
    action: 'audit.exported',
    object: null,
    detail: { action, from, to },
  });
  return pagesBy<AuditRow>(PAGE, (last) => readAudit(context, staff, { ...filter, before: last?.seq }, PAGE));
}
