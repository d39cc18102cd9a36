import { type KeyObject, verify as verifyBytes } from 'node:crypto';
import {
  type RequestDescriptor,
  type UntrustedSignatureCandidate,
  type Verifier,
  verifySignature,
} from 'http-message-sig';
import { isInnerList, parseDictionary } from 'structured-headers';
import { sha256 } from '../../lib/hash.ts';
import { type HeaderMap, headerText } from '../network.ts';
import { agentOrigin } from './directory.ts';
import { coveredDirectory } from './signature-agent.ts';

/** Web Bot Auth: an HTTP message signature (RFC 9421, Ed25519) with the tag `web-bot-auth`, under our policy. */

const TAG = 'web-bot-auth';
const ALGORITHM = 'ed25519';
const MAX_HEADER_BYTES = 8192;
/** Labels that are tried; more than these is no agent in good faith. */
const MAX_CANDIDATES = 4;
const CREATED_SKEW_SECONDS = 30;

export interface BotAuthPolicy {
  /** Public names of this server: what `@authority` is compared with. */
  readonly authorities: () => readonly string[];
  /** Longest `expires` − `created`; 24 h (contract 3.4). */
  readonly maxValiditySeconds: number;
}

/** The cached key of a directory; never a request. Null: unknown, so far or for good. */
export type FindAgentKey = (directory: string, thumbprint: string, nowSeconds: number) => KeyObject | null;

export interface BotAuthRequest {
  readonly method: string;
  /** The request target as sent. */
  readonly target: string;
  readonly headers: HeaderMap;
  readonly https: boolean;
}

export interface BotAuthDeps {
  readonly policy: BotAuthPolicy;
  readonly findKey: FindAgentKey;
  /** True for the first use of a signature's nonce, on all nodes together. */
  readonly claimNonce: (nonce: string, expiresAt: number) => Promise<boolean>;
}

interface Signed {
  readonly agentId: string;
  readonly nonceKey: string | null;
  readonly expiresAt: number;
}

/** The labels that carry the tag, as a String and not a Token; only those of a well-formed header. */
function taggedLabels(signatureInput: string): string[] {
  try {
    return [...parseDictionary(signatureInput)]
      .filter(([, member]) => isInnerList(member) && member[1].get('tag') === TAG)
      .map(([label]) => label)
      .slice(0, MAX_CANDIDATES);
  } catch {
    return [];
  }
}

/** Lower case, without the scheme's default port (RFC 9421 section 2.2.3). */
function normaliseAuthority(host: string, https: boolean): string {
  return host.toLowerCase().replace(https ? /:443$/ : /:80$/, '');
}

/** `@authority`: the Host of the request, when it is one of our configured names; a proxy in front keeps it. */
function ownAuthority(request: BotAuthRequest, policy: BotAuthPolicy): string | null {
  const host = normaliseAuthority(headerText(request.headers, 'host') ?? '', request.https);
  return policy.authorities().includes(host) ? host : null;
}

/** Header values that may stand in a signature base; a line break in one could forge another line. */
const FIELD_CONTENT = /^[\t\x20-\x7e]*$/;

/** Only fields that the signature may cover: one odd header elsewhere must not cost the agent its name. */
function describe(request: BotAuthRequest, authority: string): RequestDescriptor {
  const input = headerText(request.headers, 'signature-input') ?? '';
  const fields = Object.entries(request.headers).flatMap(([name, value]) => {
    if (value === undefined || !(input.includes(`"${name}"`) || name.startsWith('signature'))) return [];
    const values = typeof value === 'string' ? [value] : value;
    return values.every((text) => FIELD_CONTENT.test(text))
      ? values.map((text) => ({ name, value: text }))
      : [];
  });
  const targetUri = `${request.https ? 'https' : 'http'}://${authority}${request.target}`;
  return { kind: 'request', method: request.method, targetUri, requestTarget: request.target, fields };
}

/** created ≤ now, expires not past, at most 24 h apart; both have to be there. */
function timesAreGood(
  parameters: UntrustedSignatureCandidate['parameters'],
  now: number,
  policy: BotAuthPolicy,
): boolean {
  const { created, expires } = parameters;
  if (created === undefined || expires === undefined) return false;
  return (
    created <= now + CREATED_SKEW_SECONDS &&
    expires >= now &&
    created <= expires &&
    expires - created <= policy.maxValiditySeconds
  );
}

class Unverified extends Error {}

function makeVerifier(key: KeyObject): Verifier {
  return { algorithm: ALGORITHM, verify: (data, signature) => verifyBytes(null, data, key, signature) };
}

async function verifyLabel(
  deps: BotAuthDeps,
  request: BotAuthRequest,
  label: string,
  authority: string,
  now: number,
): Promise<Signed> {
  let directory = '';
  const resolveVerifier = (candidate: UntrustedSignatureCandidate): Verifier => {
    const { parameters, components } = candidate;
    const found = coveredDirectory(headerText(request.headers, 'signature-agent') ?? '', label, components);
    const bound = components.some(({ name }) => name === '@authority' || name === '@target-uri');
    if (found === null || !bound || !timesAreGood(parameters, now, deps.policy)) throw new Unverified();
    const key = deps.findKey(found, parameters.keyid ?? '', now);
    if (!key) throw new Unverified();
    directory = found;
    return makeVerifier(key);
  };
  const { parameters } = await verifySignature(describe(request, authority), {
    label,
    resolveVerifier,
    policy: {
      algorithms: [ALGORITHM],
      requiredComponents: [],
      requiredParameters: ['created', 'expires', 'keyid', 'tag'],
      clockSkew: CREATED_SKEW_SECONDS,
      now,
    },
  });
  const { nonce, keyid, expires } = parameters;
  const nonceKey =
    nonce === undefined ? null : sha256(JSON.stringify([directory, keyid, nonce])).toString('base64url');
  return {
    agentId: agentOrigin(directory),
    nonceKey,
    expiresAt: ((expires ?? now) + CREATED_SKEW_SECONDS) * 1000,
  };
}

async function firstVerified(
  deps: BotAuthDeps,
  request: BotAuthRequest,
  labels: readonly string[],
  now: number,
): Promise<Signed | null> {
  const authority = ownAuthority(request, deps.policy);
  if (authority === null) return null;
  for (const label of labels) {
    try {
      return await verifyLabel(deps, request, label, authority, now);
    } catch {
      // Every cause alike: unsigned, forged, unknown or against the policy is simply not a declared agent.
    }
  }
  return null;
}

function tooLarge(...texts: readonly string[]): boolean {
  return texts.reduce((sum, text) => sum + text.length, 0) > MAX_HEADER_BYTES;
}

/**
 * `declaredAgentId`, or null when nothing verified. Never waits on an address that the client names: the key is in the
 * cache or it is not. A signature that carries a nonce is good once.
 * @param now epoch milliseconds
 */
export async function verifyBotAuth(
  deps: BotAuthDeps,
  request: BotAuthRequest,
  now: number,
): Promise<string | null> {
  const input = headerText(request.headers, 'signature-input');
  const signature = headerText(request.headers, 'signature');
  const agent = headerText(request.headers, 'signature-agent');
  if (input === null || signature === null || agent === null || tooLarge(input, signature, agent))
    return null;
  const signed = await firstVerified(deps, request, taggedLabels(input), Math.floor(now / 1000));
  if (!signed) return null;
  const fresh = signed.nonceKey === null || (await deps.claimNonce(signed.nonceKey, signed.expiresAt));
  return fresh ? signed.agentId : null;
}
