import { start } from './start.ts';
import { emptyReceipt } from './status.ts';
import type { BannerOptions, ConsentSnapshot, GpdConsent } from './types.ts';

/** The banner for bundlers (`@gpd/browser/banner`): nothing runs on import. */

const SNAPSHOT: ConsentSnapshot = {
  phase: 'loading',
  problem: null,
  gpc: false,
  granted: [],
  purposes: [],
  principalId: null,
};

/** On a server nobody is asked, and nothing is granted. The same object for each render. */
const serverConsent: GpdConsent = {
  ready: Promise.resolve(SNAPSHOT),
  receipt: async () => emptyReceipt(false, 0),
  state: () => SNAPSHOT,
  open() {},
  withdraw: async () => ({ outcome: 'failed', problem: 'no-browser' }),
  on: () => () => {},
  activate() {},
  link: async () => ({ linked: false, status: 0, error: 'no-browser' }),
  join: async () => ({ joined: false, status: 0, error: 'no-browser' }),
};

/**
 * Starts the banner, once per page, as `window.gpd.consent`. A later call answers the banner that is there.
 */
export function startBanner(options: BannerOptions): GpdConsent {
  if (typeof document === 'undefined') return serverConsent;
  const page = window as { gpd?: { consent?: GpdConsent } };
  // A form with the id `gpd` would appear here as well; only an own property is an API.
  page.gpd = (Object.hasOwn(page, 'gpd') && page.gpd) || {};
  const { key, server, language: lang, theme, store, domain, googleConsent } = options;
  const attributes = new Map(Object.entries({ lang, theme, store, domain, 'google-consent': googleConsent }));
  page.gpd.consent ??= start(
    () => import('./extras.ts'),
    key,
    server,
    (name) => attributes.get(name) ?? null,
  );
  return page.gpd.consent;
}
