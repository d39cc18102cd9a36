import { createHash, createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { directoryUrl, importAgentKey } from '../../../src/agents/directory.ts';
import { type BotAuthDeps, type BotAuthRequest, judgeSignatures } from '../../../src/agents/verify.ts';
import { NOW } from '../../support/make.ts';

/**
 * An agent that signs its requests. The signature base is built here by hand, from the text of RFC 9421 section 2.5, so
 * that a slip in the library that verifies is not made twice.
 */

export const AGENT_ORIGIN = 'https://agent.example';
export const HOST = 'gpd.example';
export const TARGET = '/_fp/i/v1';
export const NOW_SECONDS = Math.floor(NOW / 1000);

export interface Jwk {
  readonly kty: string;
  readonly crv: string;
  readonly x: string;
}

export interface Agent {
  readonly origin: string;
  readonly directory: string;
  readonly jwk: Jwk;
  /** RFC 7638, computed by hand. */
  readonly thumbprint: string;
  readonly privateKey: KeyObject;
}

/** RFC 7638 section 3: the required members in lexicographic order, without white space. */
export function thumbprintOf({ kty, crv, x }: Jwk): string {
  const members = `{"crv":"${crv}","kty":"${kty}","x":"${x}"}`;
  return createHash('sha256').update(members).digest('base64url');
}

function agentOf(privateKey: KeyObject, x: string, origin: string): Agent {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x };
  const directory = directoryUrl(origin) ?? '';
  return { origin, directory, jwk, thumbprint: thumbprintOf(jwk), privateKey };
}

export function createAgent(origin = AGENT_ORIGIN): Agent {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return agentOf(privateKey, publicKey.export({ format: 'jwk' }).x ?? '', origin);
}

/** The key pair that RFC 9421 prints in section B.1.4. */
export function rfcTestAgent(): Agent {
  const x = 'JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs';
  const d = 'n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU';
  const privateKey = createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', x, d }, format: 'jwk' });
  return agentOf(privateKey, x, AGENT_ORIGIN);
}

/** Serialised parameters in their order; null leaves one out. */
export type Params = Readonly<Record<string, string | null>>;

export interface SignOptions {
  readonly label?: string;
  readonly components?: readonly string[];
  readonly params?: Params;
  /** The Signature-Agent header; by default a dictionary with a member named like the label. */
  readonly signatureAgent?: string;
  readonly method?: string;
  readonly host?: string;
  readonly target?: string;
  readonly scheme?: 'http' | 'https';
  readonly headers?: Readonly<Record<string, string>>;
}

export const quoted = (text: string): string => `"${text}"`;

function derived(
  name: string,
  options: Required<Pick<SignOptions, 'method' | 'host' | 'target' | 'scheme'>>,
): string {
  const { method, host, target, scheme } = options;
  const [path = '', query] = target.split(/(?=\?)/);
  const values: Record<string, string> = {
    '@method': method,
    '@authority': host.toLowerCase(),
    '@scheme': scheme,
    '@target-uri': `${scheme}://${host}${target}`,
    '@request-target': target,
    '@path': path,
    '@query': query ?? '?',
  };
  return values[name] ?? '';
}

/** The member of a dictionary header as it was written: members here hold no comma. */
function member(header: string, key: string): string {
  const found = header.split(',').find((part) => part.trim().startsWith(`${key}=`));
  return found?.trim().slice(key.length + 1) ?? '';
}

function componentValue(
  component: string,
  options: SignOptions,
  headers: Readonly<Record<string, string>>,
): string {
  const [, name = '', key] = /^"([^"]+)"(?:;key="([^"]+)")?/.exec(component) ?? [];
  const { method = 'POST', host = HOST, target = TARGET, scheme = 'https' } = options;
  if (name.startsWith('@')) return derived(name, { method, host, target, scheme });
  const value = headers[name] ?? '';
  return key === undefined ? value.trim() : member(value, key);
}

/** The default parameters: signed ten seconds ago, good for five minutes. */
function defaultParams(agent: Agent, over: Params = {}): Params {
  return {
    created: String(NOW_SECONDS - 10),
    expires: String(NOW_SECONDS + 290),
    keyid: quoted(agent.thumbprint),
    tag: '"web-bot-auth"',
    ...over,
  };
}

/** Signature-Input, Signature and Signature-Agent of one signature beside the headers it covers. */
export function signedHeaders(agent: Agent, options: SignOptions = {}): Record<string, string> {
  const { label = 'sig1' } = options;
  const signatureAgent = options.signatureAgent ?? `${label}=${quoted(agent.origin)}`;
  const components = options.components ?? ['"@authority"', `"signature-agent";key="${label}"`];
  const headers = { host: options.host ?? HOST, 'signature-agent': signatureAgent, ...options.headers };
  const params = Object.entries(defaultParams(agent, options.params))
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `;${name}=${value}`)
    .join('');
  const input = `(${components.join(' ')})${params}`;
  const lines = components.map((component) => `${component}: ${componentValue(component, options, headers)}`);
  const base = [...lines, `"@signature-params": ${input}`].join('\n');
  const signature = sign(null, Buffer.from(base), agent.privateKey).toString('base64');
  return { ...headers, 'signature-input': `${label}=${input}`, signature: `${label}=:${signature}:` };
}

/** Several signatures of one request; the later ones do not cover the earlier. */
export function joinSignatures(...all: readonly Readonly<Record<string, string>>[]): Record<string, string> {
  const join = (name: string): string =>
    [...new Set(all.map((headers) => headers[name]).filter((value) => value !== undefined))].join(', ');
  const names = ['signature-input', 'signature', 'signature-agent'];
  return Object.assign({}, ...all, ...names.map((name) => ({ [name]: join(name) }))) as Record<
    string,
    string
  >;
}

export function createRequest(
  headers: BotAuthRequest['headers'],
  over: Partial<BotAuthRequest> = {},
): BotAuthRequest {
  return { method: 'POST', target: TARGET, https: true, headers, bundle: 'acme|nonce', ...over };
}

/** Our production policy over a cache that holds these agents' keys; a nonce is good once. */
export function createDeps(agents: readonly Agent[], over: Partial<BotAuthDeps> = {}): BotAuthDeps {
  const nonces = new Set<string>();
  return {
    policy: { authorities: () => [HOST], tags: ['web-bot-auth'], maxValiditySeconds: 86_400 },
    findKey: (directory, thumbprint) => {
      const ofDirectory = agents.filter((one) => one.directory === directory);
      const agent = ofDirectory.find((one) => one.thumbprint === thumbprint);
      if (agent) return importAgentKey({ thumbprint, x: agent.jwk.x });
      return ofDirectory.length === 0 ? 'key-set-unknown' : 'key-unknown';
    },
    claimNonce: ({ nonce }) => Promise.resolve(!nonces.has(nonce) && nonces.add(nonce) === nonces),
    ...over,
  };
}

/** The agent of a request whose signature verifies, or null. */
export async function verifiedAgent(
  deps: BotAuthDeps,
  request: BotAuthRequest,
  now: number,
): Promise<string | null> {
  return (await judgeSignatures(deps, request, now)).agent;
}
