import { parseUrl } from '../lib/url.ts';
import type { Ceremony } from './challenge.ts';

/** What the browser is asked (WebAuthn JSON): a discoverable credential, no attestation, user verification preferred. */

const TIMEOUT_MS = 120_000;
const ES256 = -7;
const ED25519 = -8;
const RS256 = -257;
export const ALGORITHMS = [ES256, ED25519, RS256];

/** @param asked `userId` is random for each passkey: it identifies no person */
export function publicKeyOf(
  ceremony: Ceremony,
  { rpId, challenge, userId }: Readonly<Record<'rpId' | 'challenge' | 'userId', string>>,
): Record<string, unknown> {
  const both = { challenge, timeout: TIMEOUT_MS };
  if (ceremony === 'get') return { ...both, rpId, allowCredentials: [], userVerification: 'preferred' };
  return {
    ...both,
    rp: { id: rpId, name: rpId },
    user: { id: userId, name: rpId, displayName: rpId },
    pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
    excludeCredentials: [],
    attestation: 'none',
    authenticatorSelection: {
      residentKey: 'required',
      requireResidentKey: true,
      userVerification: 'preferred',
    },
  };
}

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
