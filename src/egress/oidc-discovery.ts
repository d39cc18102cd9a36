import { z } from 'zod';
import { readSigningKeys } from '../auth/tokens.ts';
import { SECOND } from '../lib/clock.ts';
import { EgressRefused } from './guard.ts';
import { anywhere, type FetchOptions, fetchJsonDocument } from './send.ts';

/** Reads an issuer's signing keys with OpenID Connect Discovery 1.0, as a resource server needs them. */

/** The operator names the issuer, so a private address is allowed; redirects are still refused. */
const ISSUER_FETCH: FetchOptions = {
  mediaType: null,
  maxBytes: 262_144,
  timeoutMs: 3 * SECOND,
  allow: anywhere,
  plainLoopback: true,
};

const metadataSchema = z.object({ issuer: z.string(), jwks_uri: z.string() });

async function fetchPart(part: string, address: string, options: FetchOptions): Promise<unknown> {
  try {
    return await fetchJsonDocument(address, options);
  } catch (error) {
    throw new EgressRefused(`${part}: ${error instanceof Error ? error.message : 'it cannot be read'}`);
  }
}

/**
 * Reads the keys with which an issuer signs now.
 * @throws {EgressRefused} with a reason that quotes nothing of the answers
 */
export async function fetchSigningKeys(issuer: string, options: Partial<FetchOptions> = {}) {
  const fetchOptions = { ...ISSUER_FETCH, ...options };
  // Discovery section 4.1: remove a slash at the end of the issuer first.
  const address = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const metadata = metadataSchema.safeParse(await fetchPart('discovery document', address, fetchOptions));
  if (!metadata.success) throw new EgressRefused('discovery document: it names no issuer and jwks_uri');
  // Discovery section 4.3: otherwise one provider could speak for another.
  if (metadata.data.issuer !== issuer)
    throw new EgressRefused('discovery document: its issuer is not exactly GPD_OIDC_ISSUER');
  const keys = readSigningKeys(await fetchPart('JWKS', metadata.data.jwks_uri, fetchOptions));
  if (!keys) throw new EgressRefused('JWKS: it is not a set of at most 100 keys');
  if (keys.length === 0) throw new EgressRefused('JWKS: it holds no P-256 key and no RSA key from 2048 bits');
  return keys;
}
