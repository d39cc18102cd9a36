import type { IncomingMessage, ServerResponse } from 'node:http';
import { ConsentError } from './errors.ts';
import { type HeaderSource, isObject, valuesOf } from './request.ts';
import type { CallOptions } from './types.ts';

/** Asks gpd who signed a request (Web Bot Auth); a middleware asks once for each. */

/** A request of Node, Express or Fetch, or such a description. */
export interface SignedRequest {
  readonly headers: HeaderSource;
  readonly method?: string | undefined;
  /** Absolute, or a path. */
  readonly url?: string | undefined;
}

export interface AgentOptions extends CallOptions {
  /** Address of your site, such as https://shop.example. By default that of the request, which its client names. */
  readonly origin?: string | undefined;
  /** The body as it came, if a `Content-Digest` that the signature covers is to be compared. */
  readonly body?: Uint8Array | undefined;
}

export interface AgentAnswer {
  readonly status: 'verified' | 'invalid' | 'unverified' | 'none' | (string & {});
  /** The identity, a URL; null unless the status is `verified`. */
  readonly agent: string | null;
  readonly keyid: string | null;
  readonly tag: string | null;
  readonly intent: 'browse' | 'pay' | (string & {}) | null;
  /** End of the signature, in seconds since the epoch. */
  readonly expires: number | null;
  /** A code of the list in gpd's documentation, or `unavailable`; null if verified or none. Do not tell the agent. */
  readonly reason: string | null;
  /** The reason why gpd could not be asked; null for an answer of gpd. */
  readonly error: ConsentError | null;
}

const NOTHING = { agent: null, keyid: null, tag: null, intent: null, expires: null } as const;
export const UNSIGNED: AgentAnswer = { status: 'none', ...NOTHING, reason: null, error: null };
/** Nobody is verified if gpd cannot be asked. */
export const unasked = (error: ConsentError): AgentAnswer => ({
  status: 'unverified',
  ...NOTHING,
  reason: 'unavailable',
  error,
});

const SIGNATURE = ['signature', 'signature-input', 'signature-agent'];
const COVERED = /"([a-z0-9!#$%&'*+.^_`|~-]+)"/g;

/** The headers of the signature and those that it covers. Others are not gpd's business. */
function signedHeaders(headers: HeaderSource): Record<string, readonly string[]> {
  const input = valuesOf(headers, 'signature-input').join();
  const names = new Set([...SIGNATURE, ...[...input.matchAll(COVERED)].map(([, name = '']) => name)]);
  const found = [...names].map((name) => [name, valuesOf(headers, name)] as const);
  return Object.fromEntries(found.filter(([, values]) => values.length > 0));
}

/** The fields of Node's and Express's requests that say where a request went. */
interface ServerRequest {
  readonly originalUrl?: string;
  readonly protocol?: string;
  readonly socket?: { readonly encrypted?: boolean };
  readonly headers?: { readonly host?: string };
}

function addressOf(request: SignedRequest, origin: string | undefined): string {
  const { originalUrl, protocol, socket, headers } = request as ServerRequest;
  const url = originalUrl ?? request.url ?? '';
  const path = url.replace(/^https?:\/\/[^/?]*/i, '');
  if (origin !== undefined) return origin.replace(/\/+$/, '') + path;
  if (path !== url) return url;
  return `${protocol ?? (socket?.encrypted ? 'https' : 'http')}://${headers?.host ?? ''}${path}`;
}

/** @returns null if the request has no signature @throws {ConsentError} invalid-request */
export function describeRequest(request: SignedRequest, { origin, body }: AgentOptions): object | null {
  const isRequest = isObject(request) && isObject(request.headers);
  if (!isRequest || typeof request.method !== 'string' || typeof request.url !== 'string')
    throw new ConsentError('agent', 'invalid-request', {
      hint: 'request is a request with method, url and headers',
    });
  const headers = signedHeaders(request.headers);
  if (!SIGNATURE.some((name) => name in headers)) return null;
  const { method } = request;
  const text = body === undefined ? undefined : Buffer.from(body).toString('base64');
  return { method, url: addressOf(request, origin), headers, body: text };
}

interface Asked {
  agent(request: SignedRequest, options?: AgentOptions): Promise<AgentAnswer>;
}

/**
 * A middleware of Express and Connect. It hands the answer on as `request.agent`, and answers 403 where `allows`
 * says no. By default it lets every request through. The refused request is not told why.
 */
export function agentMiddleware(
  consent: Asked,
  {
    allows = () => true,
    origin,
  }: { readonly allows?: (answer: AgentAnswer) => boolean; readonly origin?: string | undefined } = {},
) {
  return async (
    request: IncomingMessage & { agent?: AgentAnswer },
    response: ServerResponse,
    next: (error?: unknown) => void,
  ): Promise<void> => {
    try {
      const answer = await consent.agent(request, { origin });
      request.agent = answer;
      if (allows(answer)) return next();
    } catch (error) {
      return next(error);
    }
    response.writeHead(403, { 'content-type': 'application/json' }).end('{"error":"agent-refused"}');
  };
}
