import type { HeaderMap } from '../http/request.ts';
import type { AgentRequest } from '../schema/agents.ts';
import type { AgentOutcome } from './reasons.ts';
import { type BotAuthDeps, judgeSignatures, MAX_VALIDITY_SECONDS } from './verify.ts';

/** Judges the signatures of a request to any host, as a proxy, a backend or a recording describes it. */

export interface HostRequest {
  readonly requestId: string;
  readonly method: string;
  /** The host that the request came for, as the client named it. */
  readonly host: string;
  readonly target: string;
  readonly https: boolean;
  readonly headers: HeaderMap;
  readonly body?: Uint8Array | undefined;
}

export interface HostJudge extends Omit<BotAuthDeps, 'policy'> {
  /** GPD_WBA_TAGS */
  readonly tags: readonly string[];
}

/** Browsers leave the scheme's own port out of an origin. */
export const withoutDefaultPort = (host: string, https: boolean): string =>
  host.toLowerCase().replace(https ? /:443$/ : /:80$/, '');

/** The signature must be for the host that the request came for. Each call is one use of its nonce. */
export function judgeAtHost(
  parts: HostJudge,
  { requestId, host, ...request }: HostRequest,
  now: number,
): Promise<AgentOutcome> {
  const name = withoutDefaultPort(host, request.https);
  const policy = {
    authorities: () => [name],
    tags: parts.tags,
    maxValiditySeconds: MAX_VALIDITY_SECONDS,
  };
  const headers = { ...request.headers, host: name };
  return judgeSignatures({ ...parts, policy }, { ...request, headers, bundle: requestId }, now);
}

/** The request at an absolute URL. */
export function requestAt({ method, url, headers, body }: AgentRequest) {
  const parsed = /^(?<scheme>https?):\/\/(?<host>[^/?]+)(?<target>.*)$/i.exec(url)?.groups;
  const { scheme = '', host = '', target = '' } = parsed ?? {};
  return {
    method,
    host,
    target: target.startsWith('/') ? target : `/${target}`,
    https: scheme.toLowerCase() === 'https',
    headers: inLowerCase(headers),
    body: body === undefined ? undefined : Buffer.from(body, 'base64'),
  };
}

function inLowerCase(headers: AgentRequest['headers']): HeaderMap {
  const lower = new Map<string, string[]>();
  for (const [name, value] of Object.entries(headers))
    lower.set(name.toLowerCase(), [...(lower.get(name.toLowerCase()) ?? []), ...[value].flat()]);
  return Object.fromEntries(lower);
}
