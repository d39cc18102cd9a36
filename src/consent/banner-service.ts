import type { Database } from '../db/db.ts';
import { canonicalJson, type Json } from '../lib/canonical-json.ts';
import type { Clock } from '../lib/clock.ts';
import type { BannerResponse } from '../schema/banner.ts';
import { bannerSettings } from '../tenants/settings.ts';
import { firstPurpose, type Purpose } from '../tenants/tenant.ts';
import { publishBanner } from './banner-store.ts';
import { FIRST_PURPOSE_TEXTS } from './first-purpose-texts.ts';
import type { ConsentTenant } from './tenant.ts';

/** What the consent banner of a tenant gets; the log records that it did. */

interface Deps {
  readonly database: Database;
  readonly clock: Clock;
  /** SHA-256 of the script that this server hands out, lower-case hex. */
  readonly script: () => Promise<string>;
}

interface BannerRequest {
  /** Primary subtag of the language that the banner speaks. */
  readonly language: string;
  /** The request carried Sec-GPC: 1. */
  readonly gpc: boolean;
}

/** In the words that gpd gave it, which it has in every language; a tenant that wrote its own writes the others, too. */
function hasFirstWords({ id, title, description }: Purpose): boolean {
  const first = firstPurpose();
  return id === first.id && title === first.title && description === first.description;
}

function wordsOf(purpose: Purpose, language: string): Pick<Purpose, 'title' | 'description'> {
  const texts = Object.hasOwn(FIRST_PURPOSE_TEXTS, language) ? FIRST_PURPOSE_TEXTS[language] : undefined;
  if (!texts || !hasFirstWords(purpose)) return { title: purpose.title, description: purpose.description };
  return { title: texts[0], description: texts[1] };
}

/** All that a person may be shown, in all languages: what the log's hash is of. */
function allTexts({ kid, settings, purposes, rules }: ConsentTenant): string {
  const translated = purposes.some(hasFirstWords) && { translated: FIRST_PURPOSE_TEXTS };
  const banner = bannerSettings(settings);
  const shown = { kid, banner, purposes, policyVersion: rules.currentVersion, ...translated };
  return canonicalJson(JSON.parse(JSON.stringify(shown)) as Json);
}

/** Without an entry in the log: for previews. */
export function bannerAnswer(tenant: ConsentTenant, { language, gpc }: BannerRequest): BannerResponse {
  const { settings, purposes, rules, kid } = tenant;
  const banner = bannerSettings(settings);
  const own = Object.hasOwn(banner.texts, language) ? banner.texts[language] : undefined;
  const named = own?.purposes ?? {};
  return {
    kid,
    policy: {
      version: rules.currentVersion,
      material: rules.materialVersion,
      url: own?.policyUrl ?? banner.policyUrl,
    },
    title: own?.title ?? banner.title,
    body: own?.body ?? banner.body,
    purposes: purposes.map((purpose) => ({
      id: purpose.id,
      ...((Object.hasOwn(named, purpose.id) && named[purpose.id]) || wordsOf(purpose, language)),
      gpc: purpose.gpc,
      ttlDays: purpose.ttlDays,
    })),
    gpc,
  };
}

export function makeBanner({ database, clock, script }: Deps) {
  /** What this process knows to be in the log, by kid; a failure is forgotten and tried again. */
  const told = new Map<string, { tenant: ConsentTenant; hash: string; done: Promise<unknown> }>();

  function publish(tenant: ConsentTenant, hash: string): Promise<unknown> {
    const { kid, revision, rules } = tenant;
    const known = told.get(kid);
    // The directory makes a new object of a tenant that changed.
    if (known?.tenant === tenant && known.hash === hash) return known.done;
    const shown = {
      kid,
      revision,
      texts: allTexts(tenant),
      script: hash,
      policyVersion: rules.currentVersion,
    };
    const done = publishBanner(database, shown, clock(), tenant.stateMac);
    told.set(kid, { tenant, hash, done });
    done.catch(() => {
      if (told.get(kid)?.done === done) told.delete(kid);
    });
    return done;
  }

  /** Nothing is shown that the log does not know of. @throws {Unavailable} when it cannot be told */
  return async (tenant: ConsentTenant, request: BannerRequest) => {
    await publish(tenant, await script());
    return bannerAnswer(tenant, request);
  };
}
