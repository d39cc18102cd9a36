import type { Database } from '../db/engine.ts';
import type { Columns } from '../db/sql.ts';
import { builtFiles } from '../http/reply.ts';
import { impersonalEntry } from '../ledger/entries.ts';
import type { Clock } from '../lib/clock.ts';
import { sha256 } from '../lib/crypto.ts';
import { canonicalJson, type Json } from '../lib/json.ts';
import { appendOne, lockHead } from '../log/entries-store.ts';
import type { EntryMacs } from '../log/problems.ts';
import { type BannerResponse, type EmbedManifest, embedManifestSchema } from '../schema/banner.ts';
import type { Purpose } from '../tenants/purposes.ts';
import { pickBannerSettings, type TenantSettings } from '../tenants/settings.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { toPurpose } from '../tenants/tenant-store.ts';
import { builtInTexts, wordsOf } from './purpose-words.ts';

/**
 * Serves the consent banner of a tenant its texts and script, which the log records before they are shown.
 */

interface Deps {
  readonly database: Database;
  readonly clock: Clock;
  readonly embed: Pick<Embed, 'scriptHash' | 'wordsFor'>;
}

interface BannerRequest {
  /** Primary subtag of the language that the banner speaks. */
  readonly language: string;
  /** The request carried Sec-GPC: 1. */
  readonly gpc: boolean;
}

/** The log had these texts before a purpose could be left out: their bytes are the same where none is. */
function toShown(purpose: Purpose): Omit<Purpose, 'banner'> {
  const { banner: _banner, ...words } = toPurpose(purpose);
  return words;
}

const askedPurposes = ({ purposes }: Pick<Tenant, 'purposes'>) => purposes.filter(({ banner }) => banner);

/** The parts of a tenant that its banner shows. */
interface ShownTenant extends Pick<Tenant, 'kid' | 'purposes'> {
  readonly settings: Pick<TenantSettings, Extract<keyof TenantSettings, `banner.${string}`>>;
  readonly rules: Pick<Tenant['rules'], 'currentVersion' | 'materialVersion'>;
}

/** All texts that a person may be shown, in all languages. The log has their hash. */
function allTexts(tenant: Tenant): string {
  const { kid, settings, rules } = tenant;
  const purposes = askedPurposes(tenant);
  const translated = purposes.flatMap((purpose) => {
    const texts = builtInTexts(purpose);
    return texts ? [[purpose.id, texts] as const] : [];
  });
  const banner = pickBannerSettings(settings);
  const shown = {
    ...{ kid, banner, purposes: purposes.map(toShown), policyVersion: rules.currentVersion },
    ...(translated.length > 0 && { translated: Object.fromEntries(translated) }),
  };
  return canonicalJson(JSON.parse(JSON.stringify(shown)) as Json);
}

/** Without an entry in the log: for previews. */
export function bannerAnswer(tenant: ShownTenant, { language, gpc }: BannerRequest): BannerResponse {
  const { settings, rules, kid } = tenant;
  const banner = pickBannerSettings(settings);
  const languageTexts = Object.hasOwn(banner.texts, language) ? banner.texts[language] : undefined;
  const named = languageTexts?.purposes ?? {};
  return {
    kid,
    policy: {
      version: rules.currentVersion,
      material: rules.materialVersion,
      url: languageTexts?.policyUrl ?? banner.policyUrl,
    },
    siteName: banner.siteName,
    imprintUrl: languageTexts?.imprintUrl ?? banner.imprintUrl,
    title: languageTexts?.title ?? banner.title,
    body: languageTexts?.body ?? banner.body,
    purposes: askedPurposes(tenant).map((purpose) => ({
      id: purpose.id,
      ...((Object.hasOwn(named, purpose.id) && named[purpose.id]) || wordsOf(purpose, language)),
      gpc: purpose.gpc,
      ttlDays: purpose.ttlDays,
      definition: {
        seq: purpose.definition,
        outdatedUntil: purpose.materialSince === null ? null : purpose.materialSince - 1,
        optOutUntil: purpose.optOutUntil,
        askUntil: purpose.askUntil,
      },
    })),
    gpc,
    refusalDays: settings['banner.refusalDays'],
  };
}

export function createBanner({ database, clock, embed }: Deps) {
  /** Banners that this process knows to be in the log, by kid; a failed publication is retried. */
  const publishedBanners = new Map<string, { tenant: Tenant; hash: string; done: Promise<unknown> }>();

  function publish(tenant: Tenant, hash: string): Promise<unknown> {
    const { kid, revision, rules } = tenant;
    const publication = publishedBanners.get(kid);
    // The directory creates a new object for a changed tenant.
    if (publication?.tenant === tenant && publication.hash === hash) return publication.done;
    const shown = {
      kid,
      revision,
      texts: allTexts(tenant),
      script: hash,
      policyVersion: rules.currentVersion,
    };
    const publishing = publishBanner(database, shown, clock(), tenant.stateMac);
    publishedBanners.set(kid, { tenant, hash, done: publishing });
    publishing.catch(() => {
      if (publishedBanners.get(kid)?.done === publishing) publishedBanners.delete(kid);
    });
    return publishing;
  }

  /** The log records a banner before anybody sees it. @throws {Unavailable} if that fails */
  return async (tenant: Tenant, request: BannerRequest) => {
    await publish(tenant, await embed.scriptHash());
    return { ...bannerAnswer(tenant, request), ...(await embed.wordsFor(request.language)) };
  };
}

/** A tenant's banner in the version of one node. */
export interface ShownBanner {
  readonly kid: string;
  /** Revision of the tenant: a node that is behind must not publish a replaced banner. */
  readonly revision: number;
  /** Canonical JSON of all texts, in all languages. */
  readonly texts: string;
  /** SHA-256 of the script, lower-case hex. */
  readonly script: string;
  readonly policyVersion: number;
}

interface ListedBanner {
  readonly seq: number;
  readonly texts: string;
  readonly textsSha256: string;
  readonly scriptSha256: string;
  readonly publishedAt: number;
}

/**
 * Records in the log what is shown, once per change. The lock of the head orders several nodes; a node that
 * polls late or still has the older script records nothing twice.
 * @returns the entry, or null if the log has it already
 */
export function publishBanner(database: Database, banner: ShownBanner, now: number, macs?: EntryMacs) {
  const { kid, revision, texts, script, policyVersion } = banner;
  const digest = sha256(texts).toString('hex');
  return database.transaction(async (tx) => {
    await lockHead(tx, kid);
    const table = () => tx('banners').where({ kid });
    const lastEntry = await table()
      .orderBy('seq', 'desc')
      .first<Columns<ListedBanner & Pick<ShownBanner, 'revision'>> | undefined>();
    if (lastEntry?.texts_sha256 === digest && lastEntry.script_sha256 === script) return null;
    if (lastEntry && lastEntry.revision > revision) return null;
    const content = { revision, texts_sha256: digest, script_sha256: script };
    if (await table().where(content).first()) return null;
    const body = { texts: digest, script, policyVersion };
    const entry = impersonalEntry({ type: 'banner.published', at: now, purpose: null }, body);
    const appended = await appendOne(tx, kid, entry, macs);
    await tx('banners').insert({ kid, seq: appended.seq, ...content, texts, published_at: now });
    return appended;
  });
}

/** Newest first: what people were shown, to compare with the log. */
export async function listBanners(database: Database, kid: string) {
  const names = { textsSha256: 'texts_sha256', scriptSha256: 'script_sha256', publishedAt: 'published_at' };
  const banners = database.read('banners').where({ kid }).orderBy('seq', 'desc');
  return (await banners.select('seq', 'texts', names)) as ListedBanner[];
}

/** The banner as it was built. */
export type Embed = ReturnType<typeof createEmbed>;

const directory = new URL('../../dist/banner/', import.meta.url);

export function createEmbed() {
  const files = builtFiles(directory);
  let manifest: EmbedManifest | undefined;
  let hash: string | undefined;
  async function readManifest(): Promise<EmbedManifest> {
    manifest ??= embedManifestSchema.parse(
      JSON.parse((await files('manifest.json')).body.toString()) as unknown,
    );
    return manifest;
  }
  /** The banner's words in one of its languages. */
  const wordsIn = async (language: string): Promise<Record<string, string>> =>
    JSON.parse((await files(`${language}.json`)).body.toString()) as Record<string, string>;
  return {
    files,
    manifest: readManifest,
    wordsIn,
    /** The part of an answer that has the banner's words: none in English, which the script has. */
    wordsFor: async (language: string) =>
      language !== 'en' && (await readManifest()).languages.includes(language)
        ? { words: await wordsIn(language) }
        : {},
    /** SHA-256 of the script as it is served, lower-case hex. */
    scriptHash: async () => {
      hash ??= sha256((await files('embed.js')).body).toString('hex');
      return hash;
    },
  };
}
