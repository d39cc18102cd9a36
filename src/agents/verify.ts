import { type KeyObject, verify as verifyBytes } from 'node:crypto';
import type { SignatureParameters, Verifier } from 'http-message-sig';
import { headerText } from '../http/request.ts';
import { sha256Text } from '../lib/crypto.ts';
import { agentOrigin } from './directory.ts';
import { taggedLabels, verifyGeneral } from './general.ts';
import {
  ALGORITHM,
  type BotAuthRequest,
  type Claim,
  CREATED_SKEW_SECONDS,
  type OwnRequest,
  SIGNATURE_FIELDS,
  TAG,
} from './message.ts';
import { type PlainSignature, readPlain } from './plain.ts';

/** Web Bot Auth: an HTTP message signature (RFC 9421, Ed25519) with the tag `web-bot-auth`, under our policy. */

const MAX_HEADER_BYTES = 8192;
/** Labels that are tried; more than these is no agent in good faith. */
const MAX_CANDIDATES = 4;

export interface BotAuthPolicy {
  /** Public names of this server: what `@authority` is compared with. */
  readonly authorities: () => readonly string[];
  /** Longest `expires` − `created`; 24 h (contract 3.4). */
  readonly maxValiditySeconds: number;
}

/** The cached key of a directory; never a request. Null: unknown, so far or permanently. */
export type FindAgentKey = (directory: string, thumbprint: string, nowSeconds: number) => KeyObject | null;

/** That a signature is used. Hashes: neither the agent's nonce nor the bundle's is stored. */
export interface SignatureClaim {
  readonly nonce: string;
  readonly bundle: string;
  readonly expiresAt: number;
}

export interface BotAuthDeps {
  readonly policy: BotAuthPolicy;
  readonly findKey: FindAgentKey;
  /** True for the first bundle that a signature's nonce comes with, as often as it comes, on all nodes together. */
  readonly claimNonce: (claim: SignatureClaim) => Promise<boolean>;
}

/** Lower case, without the scheme's default port (RFC 9421 section 2.2.3). */
function normaliseAuthority(host: string, https: boolean): string {
  return host.toLowerCase().replace(https ? /:443$/ : /:80$/, '');
}

/**
 * With `@authority`: the Host of the request, when it is one of our configured names; a proxy in front keeps it. Only with
 * a target in origin form, or the two together would read as a URI of another host (`https://ours` + `@theirs/`).
 */
function ownRequest(request: BotAuthRequest, policy: BotAuthPolicy): OwnRequest | null {
  const authority = normaliseAuthority(headerText(request.headers, 'host') ?? '', request.https);
  const isOurs = request.target.startsWith('/') && policy.authorities().includes(authority);
  return isOurs ? { ...request, authority } : null;
}

/** created ≤ now, expires not past, at most 24 h apart; both have to be there. */
function timesAreGood({ created, expires }: SignatureParameters, now: number, policy: BotAuthPolicy) {
  if (created === undefined || expires === undefined) return false;
  return (
    created <= now + CREATED_SKEW_SECONDS &&
    expires >= now &&
    created <= expires &&
    expires - created <= policy.maxValiditySeconds
  );
}

/** A signature whose claims the policy agrees with, by a key that its directory holds; its bytes are still to verify. */
type Admitted = NonNullable<ReturnType<typeof admit>>;

/** Null: against the policy, or by a key that nobody knows. */
function admit(deps: BotAuthDeps, { components, parameters, directory }: Claim, now: number) {
  const { alg = ALGORITHM, tag, keyid, nonce, expires } = parameters;
  const bound = components.some(({ name }) => name === '@authority' || name === '@target-uri');
  if (directory === null || !bound || alg !== ALGORITHM || tag !== TAG) return null;
  if (keyid === undefined || expires === undefined || !timesAreGood(parameters, now, deps.policy))
    return null;
  const key = deps.findKey(directory, keyid, now);
  return key && { key, directory, keyid, nonce, expires };
}

function verifyPlain(deps: BotAuthDeps, plain: PlainSignature, now: number): Admitted | null {
  const admitted = admit(deps, plain, now);
  return admitted && verifyBytes(null, plain.base, admitted.key, plain.signature) ? admitted : null;
}

async function verifyLabel(deps: BotAuthDeps, request: OwnRequest, label: string, now: number) {
  let admitted: Admitted | null = null;
  const trust = (claim: Claim): Verifier => {
    const found = admit(deps, claim, now);
    admitted = found;
    return {
      algorithm: ALGORITHM,
      verify: (base, signature) => found !== null && verifyBytes(null, base, found.key, signature),
    };
  };
  try {
    await verifyGeneral(request, label, now, trust);
    return admitted;
  } catch {
    // Every cause alike: unsigned, forged, unknown or against the policy is simply not a declared agent.
    return null;
  }
}

async function firstVerified(deps: BotAuthDeps, request: OwnRequest, now: number): Promise<Admitted | null> {
  const plain = readPlain(request);
  if (plain) return verifyPlain(deps, plain, now);
  for (const label of taggedLabels(request, MAX_CANDIDATES)) {
    const admitted = await verifyLabel(deps, request, label, now);
    if (admitted) return admitted;
  }
  return null;
}

/** All three are there, and not too much of it. */
function isSigned(request: BotAuthRequest): boolean {
  const texts = SIGNATURE_FIELDS.map((name) => headerText(request.headers, name));
  if (texts.includes(null)) return false;
  return texts.reduce((sum, text) => sum + (text ?? '').length, 0) <= MAX_HEADER_BYTES;
}

function firstUse(deps: BotAuthDeps, { directory, keyid, nonce, expires }: Admitted, bundle: string) {
  if (nonce === undefined) return Promise.resolve(true);
  return deps.claimNonce({
    nonce: sha256Text(JSON.stringify([directory, keyid, nonce])),
    bundle: sha256Text(bundle),
    expiresAt: (expires + CREATED_SKEW_SECONDS) * 1000,
  });
}

/**
 * `declaredAgentId`, or null when nothing verified. Never waits on an address that the client names: the key is in the
 * cache or it is not. A signature that carries a nonce is good for one bundle: the same one after a 503, and no other.
 * @param now epoch milliseconds
 */
export async function verifyBotAuth(deps: BotAuthDeps, request: BotAuthRequest, now: number) {
  const own = isSigned(request) ? ownRequest(request, deps.policy) : null;
  const admitted = own && (await firstVerified(deps, own, Math.floor(now / 1000)));
  return admitted && (await firstUse(deps, admitted, request.bundle))
    ? agentOrigin(admitted.directory)
    : null;
}
