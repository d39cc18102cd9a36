import type { LimitName } from './route.ts';
import type { SettingName } from './settings.ts';

/** The table of rate limits. `docs/limits.md` is generated from it and from the table of routes. */

interface Limit {
  readonly settings: readonly SettingName[];
  readonly text: string;
}

export const LIMITS: Readonly<Record<LimitName, Limit>> = {
  none: {
    settings: [],
    text: 'Nothing: neither a monitor nor a proxy that asks for every visitor is refused.',
  },
  public: { settings: ['rate_public'], text: 'Every request, per client and node.' },
  ingest: { settings: ['rate_ingest'], text: 'Every bundle that declares no more than 32 KB, per client.' },
  privacy: {
    settings: ['rate_privacy'],
    text: 'Every request, per client; all these routes share one count.',
  },
  consent: {
    settings: ['rate_consent', 'rate_consent_client', 'rate_public'],
    text: 'With a secret, read-only or operator key or a session: per key or person. With a publishable key: per client, then per key. With an invalid key or session: per client. Without any: as `public`.',
  },
  'consent-by-client': {
    settings: ['rate_consent', 'rate_consent_client', 'rate_consent_new', 'rate_public'],
    text: 'As `consent`, but with a publishable key the key counts accepted grants alone. Grants and denials of browsers that the tenant does not know count per client too.',
  },
  'consent-state': {
    settings: ['rate_consent', 'rate_consent_client', 'rate_public'],
    text: 'As `consent`, but with a publishable or an invalid key apart from all other calls, per client alone: pages that stay open take nothing from visitors behind the same address.',
  },
  'consent-withdrawal': {
    settings: ['rate_consent', 'rate_consent_withdraw', 'rate_public'],
    text: 'As `consent`, but apart from all other calls: with a publishable or an invalid key per client, otherwise per key or person.',
  },
};
