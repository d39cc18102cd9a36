import { parseUrl } from '../lib/url.ts';

/**
 * The host of the page, or the tenant's `attest.rpId` where that is a parent of it. Null for an address: a relying party is a
 * domain (WebAuthn section 5.1.3). That it is registrable is the browser's to say, which has the list.
 */
export function relyingPartyOf(origin: string, setting: string): string | null {
  const host = parseUrl(origin)?.hostname ?? '';
  // A host of digits and dots is an IPv4 address in a URL, whatever its spelling was.
  if (host === '' || host.startsWith('[') || /^[\d.]+$/.test(host)) return null;
  return setting !== '' && host.endsWith(`.${setting}`) ? setting : host;
}
