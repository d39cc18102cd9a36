import { type KeyObject, verify as verifyBytes } from 'node:crypto';
import {
  type ComponentDescriptor,
  type RequestDescriptor,
  type SignatureParameters,
  type UntrustedSignatureCandidate,
  type Verifier,
  verifySignature,
} from 'http-message-sig';
import { type Item, isInnerList, parseDictionary, parseItem, Token } from 'structured-headers';
import type { Config } from '../config.ts';
import { type HeaderMap, headerText } from '../http/request.ts';
import { DAY, SECOND } from '../lib/clock.ts';
import { sha256Text } from '../lib/crypto.ts';
import { tryOr } from '../lib/errors.ts';
import { agentOrigin, directoryUrl } from './directory.ts';

/**
 * Verifies Web Bot Auth: an HTTP message signature (RFC 9421, Ed25519) with the tag `web-bot-auth`, under
 * gpd's policy.
 */

const TAG = 'web-bot-auth';
const ALGORITHM = 'ed25519';
const CREATED_SKEW_SECONDS = 30;

/** The headers that carry a signature. */
const SIGNATURE_FIELDS: readonly string[] = ['signature-input', 'signature', 'signature-agent'];
/** Their limit together, checked before any of them is parsed. */
const MAX_HEADER_BYTES = 8192;
/** At most this many labels are tried; an honest agent sends fewer. */
const MAX_LABELS = 4;
/** http-message-sig parses a keyed header again for each component that a signature covers. */
const MAX_COMPONENTS = 16;
const MAX_KEYED = 4;
const MAX_COVERED_LENGTH = 2048;

export interface BotAuthRequest {
  readonly method: string;
  /** The request target as sent. */
  readonly target: string;
  readonly headers: HeaderMap;
  readonly https: boolean;
  /**
   * The tenant and nonce of the bundle in the request: sending the same bundle again is no second use of the
   * signature.
   */
  readonly bundle: string;
}

/** A request whose Host is a public name of this server. */
interface OwnRequest extends BotAuthRequest {
  readonly authority: string;
}

interface BotAuthPolicy {
  /** The public names of this server, which `@authority` must match. */
  readonly authorities: () => readonly string[];
  /** Longest `expires` − `created`; 24 h (contract 3.4). */
  readonly maxValiditySeconds: number;
}

/** Finds a cached key of a directory, without a request. Null: unknown so far, or permanently. */
export type FindAgentKey = (directory: string, thumbprint: string, nowSeconds: number) => KeyObject | null;

/** One use of a signature. Hashes, so that neither nonce is stored. */
export interface SignatureClaim {
  readonly nonce: string;
  readonly bundle: string;
  readonly expiresAt: number;
}

export interface BotAuthDeps {
  readonly policy: BotAuthPolicy;
  readonly findKey: FindAgentKey;
  /** True for the first bundle that uses a signature's nonce on any node, also when it is sent again. */
  readonly claimNonce: (claim: SignatureClaim) => Promise<boolean>;
}

/** True: all three headers are present, and within the limit. */
function isSigned({ headers }: BotAuthRequest): boolean {
  const texts = SIGNATURE_FIELDS.map((name) => headerText(headers, name));
  if (texts.includes(null)) return false;
  return texts.reduce((sum, text) => sum + (text ?? '').length, 0) <= MAX_HEADER_BYTES;
}

/** Lower case, without the scheme's default port (RFC 9421 section 2.2.3). */
function normaliseAuthority(host: string, https: boolean): string {
  return host.toLowerCase().replace(https ? /:443$/ : /:80$/, '');
}

/**
 * The request with its `@authority`, if its Host is a configured name; a proxy in front keeps it. The target
 * must be in origin form: otherwise both together would read as a URI of another host (`https://ours` +
 * `@theirs/`).
 */
function ownRequest(request: BotAuthRequest, policy: BotAuthPolicy): OwnRequest | null {
  const authority = normaliseAuthority(headerText(request.headers, 'host') ?? '', request.https);
  const isOurs = request.target.startsWith('/') && policy.authorities().includes(authority);
  return isOurs ? { ...request, authority } : null;
}

/**
 * Limits the work of verifying. A list without the directory is refused early, because it would cost a parse
 * of that header.
 */
const isReadable = (list: readonly Item[]): boolean =>
  list.length <= MAX_COMPONENTS &&
  list.filter(([, parameters]) => parameters.has('key')).length <= MAX_KEYED &&
  list.filter(([name]) => name === 'signature-agent').length === 1;

/** The labels whose tag is a String, not a Token; empty if the header is malformed. */
function taggedLabels({ headers }: OwnRequest): string[] {
  const input = headerText(headers, 'signature-input') ?? '';
  return [...tryOr(() => parseDictionary(input), [])]
    .filter(([, member]) => isInnerList(member) && member[1].get('tag') === TAG)
    .filter(([, [list]]) => Array.isArray(list) && isReadable(list))
    .map(([label]) => label)
    .slice(0, MAX_LABELS);
}

const FIELD_CONTENT = /^[\t\x20-\x7e]*$/;
/** http-message-sig takes quadratic time on a run of blanks in a value. */
const LONG_RUN = /[\t ]{33}/;

/**
 * A header's value as a signature base may contain it, or null: a line break in one could forge another line.
 */
function fieldContent(name: string, value: string): string | null {
  const text = value.trim();
  if (text.length > MAX_COVERED_LENGTH && !SIGNATURE_FIELDS.includes(name)) return null;
  return FIELD_CONTENT.test(value) && !LONG_RUN.test(text) ? text : null;
}

/**
 * Passes only fields that a signature may cover: an odd header elsewhere must not make an agent undeclared.
 */
function describeRequest({ method, target, headers, https, authority }: OwnRequest): RequestDescriptor {
  const input = headerText(headers, 'signature-input') ?? '';
  const fields = Object.entries(headers).flatMap(([name, value]) => {
    if (value === undefined || !(input.includes(`"${name}"`) || SIGNATURE_FIELDS.includes(name))) return [];
    const values = (typeof value === 'string' ? [value] : value).map((text) => fieldContent(name, text));
    return values.every((text) => text !== null) ? values.map((text) => ({ name, value: text })) : [];
  });
  const targetUri = `${https ? 'https' : 'http'}://${authority}${target}`;
  return { kind: 'request', method, targetUri, requestTarget: target, fields };
}

/**
 * The only type of document whose host names the agent; a member of another type is ignored (contract 17).
 */
const DIRECTORY = 'directory';

function addressOf([value, parameters]: Item): string | null {
  const type = parameters.get('type') ?? DIRECTORY;
  const isDirectory = (type instanceof Token ? type.toString() : type) === DIRECTORY;
  return typeof value === 'string' && isDirectory ? value : null;
}

function addressIn(header: string, key: unknown, label: string): string | null {
  if (key === undefined) {
    const legacy = tryOr(() => parseItem(header), null);
    return legacy && addressOf(legacy);
  }
  const members = tryOr(() => parseDictionary(header), null);
  if (typeof key !== 'string' || (key !== label && members?.has(label))) return null;
  const member = members?.get(key);
  return member === undefined || isInnerList(member) ? null : addressOf(member);
}

/**
 * The directory that a signature names in the covered part of Signature-Agent: a dictionary member
 * (`"signature-agent";key="…"`) or the deployed legacy form, a bare string. A member keyed to the signature's
 * label must be covered, otherwise another header could be relabelled (contract 17). Null: none is covered.
 */
function coveredDirectory(header: string, label: string, components: readonly ComponentDescriptor[]) {
  const covered = components.filter((component) => component.name === 'signature-agent');
  const [component] = covered;
  if (covered.length !== 1 || component === undefined) return null;
  const address = addressIn(header, component.parameters['key'], label);
  return address === null ? null : directoryUrl(address);
}

/** Both times must be present: created ≤ now, expires not past, at most 24 h apart. */
function timesAreGood({ created, expires }: SignatureParameters, now: number, policy: BotAuthPolicy) {
  if (created === undefined || expires === undefined) return false;
  return (
    created <= now + CREATED_SKEW_SECONDS &&
    expires >= now &&
    created <= expires &&
    expires - created <= policy.maxValiditySeconds
  );
}

/** A signature with acceptable claims and a key of its directory; its bytes are not verified yet. */
type Admitted = NonNullable<ReturnType<typeof admit>>;

/** @returns null if the policy or a missing key forbids it. Nothing is trusted before the bytes verify. */
function admit(
  { policy, findKey }: BotAuthDeps,
  { components, parameters }: UntrustedSignatureCandidate,
  directory: string | null,
  now: number,
) {
  const { alg = ALGORITHM, tag, keyid, nonce, expires } = parameters;
  const bound = components.some(({ name }) => name === '@authority' || name === '@target-uri');
  if (directory === null || !bound || alg !== ALGORITHM || tag !== TAG) return null;
  if (keyid === undefined || expires === undefined || !timesAreGood(parameters, now, policy)) return null;
  const key = findKey(directory, keyid, now);
  return key && { key, directory, keyid, nonce, expires };
}

/** Null: the signature of this label does not verify, for any reason. */
async function verifyLabel(
  deps: BotAuthDeps,
  request: OwnRequest,
  label: string,
  now: number,
): Promise<Admitted | null> {
  const agent = headerText(request.headers, 'signature-agent') ?? '';
  let admitted: Admitted | null = null;
  const resolveVerifier = (candidate: UntrustedSignatureCandidate): Verifier => {
    const found = admit(deps, candidate, coveredDirectory(agent, label, candidate.components), now);
    admitted = found;
    return {
      algorithm: ALGORITHM,
      verify: (base, signature) => found !== null && verifyBytes(null, base, found.key, signature),
    };
  };
  const policy = {
    algorithms: [ALGORITHM],
    requiredComponents: [],
    requiredParameters: ['created', 'expires', 'keyid', 'tag'],
    clockSkew: CREATED_SKEW_SECONDS,
    now,
  } as const;
  try {
    await verifySignature(describeRequest(request), { label, resolveVerifier, policy });
    return admitted;
  } catch {
    // The result is the same for each cause: unsigned, forged, unknown or against the policy is not a
    // declared agent.
    return null;
  }
}

async function firstVerified(deps: BotAuthDeps, request: OwnRequest, now: number): Promise<Admitted | null> {
  for (const label of taggedLabels(request)) {
    const admitted = await verifyLabel(deps, request, label, now);
    if (admitted) return admitted;
  }
  return null;
}

function claimUse(deps: BotAuthDeps, { directory, keyid, nonce, expires }: Admitted, bundle: string) {
  if (nonce === undefined) return Promise.resolve(true);
  return deps.claimNonce({
    nonce: sha256Text(JSON.stringify([directory, keyid, nonce])),
    bundle: sha256Text(bundle),
    expiresAt: (expires + CREATED_SKEW_SECONDS) * 1000,
  });
}

/**
 * The `declaredAgentId`, or null if nothing verified. It never fetches an address from the client: only
 * cached keys count. A signature with a nonce is valid for one bundle, which may be sent again after a 503.
 * @param now epoch milliseconds
 */
export async function verifyBotAuth(deps: BotAuthDeps, request: BotAuthRequest, now: number) {
  const addressed = isSigned(request) ? ownRequest(request, deps.policy) : null;
  const admitted = addressed && (await firstVerified(deps, addressed, Math.floor(now / 1000)));
  return admitted && (await claimUse(deps, admitted, request.bundle))
    ? agentOrigin(admitted.directory)
    : null;
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

/** The agent that signed a request, or null. */
export type BotAuth = (request: BotAuthRequest, now: number) => Promise<string | null>;

/** @param url the address of this server; known only once it listens */
export function createBotAuth(
  config: Config,
  url: () => string,
  world: Pick<BotAuthDeps, 'findKey' | 'claimNonce'>,
): BotAuth {
  const policy = { authorities: () => publicNames(config, url()), maxValiditySeconds: DAY / SECOND };
  return (request, now) => {
    const https = request.https || url().startsWith('https:');
    return verifyBotAuth({ ...world, policy }, { ...request, https }, now);
  };
}
