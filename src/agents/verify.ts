import { createHash, type KeyObject, verify as verifyBytes } from 'node:crypto';
import { isInnerList, parseDictionary } from 'structured-headers';
import type { Config } from '../config.ts';
import { type HeaderMap, headerText } from '../http/request.ts';
import { DAY, SECOND } from '../lib/clock.ts';
import { sha256Text } from '../lib/crypto.ts';
import { tryOr } from '../lib/errors.ts';
import { readSignature, type SignedRequest, writeBase } from './base.ts';
import { covers, hasTooMany, namedDirectory, readTagged, type TaggedSignature } from './claim.ts';
import { agentIdentity } from './directory.ts';
import { AGENT_REASONS, type AgentOutcome, type AgentReason, UNSIGNED } from './reasons.ts';

/**
 * Verifies Web Bot Auth (draft-ietf-webbotauth-httpsig-protocol-01): an HTTP message signature (RFC 9421,
 * Ed25519) under gpd's policy.
 */

const ALGORITHM = 'ed25519';
const CREATED_SKEW_SECONDS = 30;

export interface BotAuthRequest {
  readonly method: string;
  /** The request target as sent. */
  readonly target: string;
  readonly headers: HeaderMap;
  readonly https: boolean;
  /** The use of the signature: sending the same bundle again is no second use of its nonce. */
  readonly bundle: string;
  /** Absent where it is not at hand; a covered `Content-Digest` counts as a header then. */
  readonly body?: Uint8Array | undefined;
}

export interface BotAuthPolicy {
  /** The names that `@authority` may have. */
  readonly authorities: () => readonly string[];
  /** GPD_WBA_TAGS */
  readonly tags: readonly string[];
  /** Longest `expires` − `created`; 24 h (contract 3.4). */
  readonly maxValiditySeconds: number;
}

/** Why a directory has no key to verify with. */
export type NoKey = Extract<AgentReason, 'key-set-unknown' | 'key-unknown' | 'key-not-in-force'>;
/** Finds a cached key of a directory, without a request. */
export type FindAgentKey = (directory: string, thumbprint: string, nowSeconds: number) => KeyObject | NoKey;

/** One use of a signature. Hashes, so that neither nonce is stored. */
export interface SignatureClaim {
  readonly nonce: string;
  readonly bundle: string;
  readonly expiresAt: number;
}

export interface BotAuthDeps {
  readonly policy: BotAuthPolicy;
  readonly findKey: FindAgentKey;
  /** Called for a request in good order that names a directory which is not known. */
  readonly discover?: ((directory: string) => void) | undefined;
  /** True for the first bundle that uses a signature's nonce on any node, also when it is sent again. */
  readonly claimNonce: (claim: SignatureClaim) => Promise<boolean>;
}

/**
 * Judges each signature of a request alone; the first that verifies names the agent. It never fetches an
 * address from the client: only cached keys count.
 * @param now epoch milliseconds
 */
export async function judgeSignatures(
  deps: BotAuthDeps,
  request: BotAuthRequest,
  now: number,
): Promise<AgentOutcome> {
  const tagged = readTagged(request.headers, deps.policy.tags);
  if (tagged === null) return UNSIGNED;
  if (typeof tagged === 'string') return failed(tagged);
  const failures: AgentOutcome[] = [];
  for (const signature of tagged) {
    const outcome = await judgeOne(deps, request, signature, Math.floor(now / 1000));
    if (outcome.status === 'verified') return outcome;
    failures.push(outcome);
  }
  return failures.find(({ status }) => status === 'invalid') ?? failures[0] ?? UNSIGNED;
}

const failed = (reason: AgentReason, claims: Partial<AgentOutcome> = {}): AgentOutcome => ({
  ...UNSIGNED,
  ...claims,
  status: AGENT_REASONS[reason][0],
  reason,
});

const isWhole = (value: unknown): value is number => Number.isInteger(value);
const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);
const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null);

/** @param now in seconds */
export async function judgeOne(
  deps: BotAuthDeps,
  request: BotAuthRequest,
  signature: TaggedSignature,
  now: number,
): Promise<AgentOutcome> {
  const { tag, parameters } = signature;
  const [keyid, expires] = [textOf(parameters.get('keyid')), numberOf(parameters.get('expires'))];
  const claimed = { keyid, tag, expires };
  if (hasTooMany(signature)) return failed('too-many-components', claimed);
  const agent = namedDirectory(headerText(request.headers, 'signature-agent') ?? '', signature);
  if (typeof agent === 'string') return failed(agent, claimed);
  if ((parameters.get('alg') ?? ALGORITHM) !== ALGORITHM) return failed('algorithm-not-supported', claimed);
  if (keyid === null) return failed('keyid-missing', claimed);
  const nonce = parameters.get('nonce') ?? null;
  const key = deps.findKey(agent.directory, keyid, now);
  const authority = authorityOf(request, deps.policy);
  const fault =
    timeFault(parameters, now, deps.policy) ??
    (covers(signature, '@authority', '@target-uri') ? null : 'host-not-covered') ??
    (authority === null ? 'wrong-host' : null) ??
    (nonce !== null && typeof nonce !== 'string' ? 'signature-malformed' : null);
  if (key === 'key-set-unknown' && fault === null) deps.discover?.(agent.directory);
  if (key === 'key-set-unknown' || key === 'key-unknown') return failed(key, claimed);

  // From here on the key is known, and what does not hold is invalid.
  const named = agentIdentity(agent.directory);
  const reason =
    (typeof key === 'string' ? key : fault) ??
    byteFault(key as KeyObject, { ...request, authority: authority ?? '' }, signature) ??
    (covers(signature, 'content-digest') && request.body
      ? digestFault(request, request.body, signature)
      : null);
  if (reason) return failed(reason, { ...claimed, named });
  const use = {
    scope: [agent.directory, keyid, textOf(nonce)],
    bundle: request.bundle,
    expires: expires ?? 0,
  };
  if (nonce !== null && !(await claimUse(deps, use))) return failed('replayed', { ...claimed, named });
  return { ...claimed, status: 'verified', agent: named, named, reason: null };
}

/** Lower case, without the scheme's default port (RFC 9421 section 2.2.3). */
const normaliseAuthority = (host: string, https: boolean): string =>
  host.toLowerCase().replace(https ? /:443$/ : /:80$/, '');

/**
 * The `@authority`, if the Host is a configured name; a proxy in front keeps it. The target must be in origin
 * form: otherwise both together would read as a URI of another host (`https://ours` + `@theirs/`).
 */
function authorityOf({ target, headers, https }: BotAuthRequest, policy: BotAuthPolicy): string | null {
  const authority = normaliseAuthority(headerText(headers, 'host') ?? '', https);
  return target.startsWith('/') && policy.authorities().includes(authority) ? authority : null;
}

/** Both times must be present: created ≤ now, expires not past, at most 24 h apart. */
function timeFault(
  parameters: TaggedSignature['parameters'],
  now: number,
  { maxValiditySeconds }: BotAuthPolicy,
): AgentReason | null {
  const [created, expires] = [parameters.get('created'), parameters.get('expires')];
  if (created === undefined) return 'created-missing';
  if (expires === undefined) return 'expires-missing';
  if (!isWhole(created) || !isWhole(expires)) return 'signature-malformed';
  if (created > now + CREATED_SKEW_SECONDS) return 'created-in-future';
  if (expires < created) return 'expires-before-created';
  if (expires - created > maxValiditySeconds) return 'valid-too-long';
  return expires < now ? 'expired' : null;
}

/** Verifies the bytes over the signature base of RFC 9421 section 2.5. */
function byteFault(key: KeyObject, request: SignedRequest, signature: TaggedSignature): AgentReason | null {
  const covered = writeBase(request, signature);
  if (typeof covered === 'string') return covered;
  const found = readSignature(request.headers, signature);
  if (typeof found === 'string') return found;
  const { base } = covered;
  if (verifyBytes(null, Buffer.from(base), key, found.bytes)) return null;
  // Agents whose URL library gives `/` no path sign an empty one.
  const emptied = base.replace(/^"@path": \/$/m, '"@path": ');
  const isOfEmptied = emptied !== base && verifyBytes(null, Buffer.from(emptied), key, found.bytes);
  return isOfEmptied ? 'empty-path' : 'signature-mismatch';
}

/** The signature base that gpd computes, or null if a covered component cannot be had. */
export function signatureBase(
  policy: BotAuthPolicy,
  request: BotAuthRequest,
  signature: TaggedSignature,
): string | null {
  const covered = writeBase({ ...request, authority: authorityOf(request, policy) ?? '' }, signature);
  return typeof covered === 'string' ? null : covered.base;
}

const DIGESTS: Readonly<Record<string, string>> = { 'sha-256': 'sha256', 'sha-512': 'sha512' };

/** Compares every digest of RFC 9530 that is signed and gpd computes. */
function digestFault(
  { headers }: BotAuthRequest,
  body: Uint8Array,
  { components }: TaggedSignature,
): AgentReason | null {
  const signed = components.flatMap(([name, parameters]) =>
    name === 'content-digest' ? [parameters.get('key')] : [],
  );
  const members = tryOr(() => parseDictionary(headerText(headers, 'content-digest') ?? ''), null);
  const known = [...(members ?? [])].filter(
    ([name]) => Object.hasOwn(DIGESTS, name) && (signed.includes(name) || signed.includes(undefined)),
  );
  if (known.length === 0) return 'digest-not-supported';
  const isRight = known.every(([name, member]) => {
    const value = isInnerList(member) ? null : member[0];
    const digest = createHash(DIGESTS[name] as string)
      .update(body)
      .digest();
    return value instanceof ArrayBuffer && digest.equals(Buffer.from(value));
  });
  return isRight ? null : 'digest-mismatch';
}

interface Use {
  readonly scope: readonly (string | null)[];
  readonly bundle: string;
  readonly expires: number;
}

/** A nonce is good for one bundle, which may be sent again after a 503. */
function claimUse(deps: BotAuthDeps, { scope, bundle, expires }: Use): Promise<boolean> {
  return deps.claimNonce({
    nonce: sha256Text(JSON.stringify(scope)),
    bundle: sha256Text(bundle),
    expiresAt: (expires + CREATED_SKEW_SECONDS) * 1000,
  });
}

/**
 * The names that `@authority` may have: the base URL's host and GPD_AUTHORITIES. Without a base URL the
 * server belongs to this machine, which has several names.
 */
export function publicNames(config: Config, url: string): readonly string[] {
  const { host, port } = new URL(url);
  const local =
    config.base_url === null ? ['localhost', '127.0.0.1', '[::1]'].map((name) => `${name}:${port}`) : [];
  return [host, ...config.authorities, ...local].map((name) => name.toLowerCase().replace(/:443$/, ''));
}

/** Judges the signatures of a request to gpd itself. */
export type BotAuth = (request: BotAuthRequest, now: number) => Promise<AgentOutcome>;

export const MAX_VALIDITY_SECONDS = DAY / SECOND;

/** @param url the address of this server; known only once it listens */
export function createBotAuth(
  config: Config,
  url: () => string,
  world: Omit<BotAuthDeps, 'policy'>,
): BotAuth {
  const policy = {
    authorities: () => publicNames(config, url()),
    tags: config.wba_tags,
    maxValiditySeconds: MAX_VALIDITY_SECONDS,
  };
  return (request, now) => {
    const https = request.https || url().startsWith('https:');
    return judgeSignatures({ ...world, policy }, { ...request, https }, now);
  };
}
