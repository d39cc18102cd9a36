import type { IncomingHttpHeaders } from 'node:http';
import type { Reply } from '../http/reply.ts';
import { type HttpRequest, headerText } from '../http/request.ts';
import { json, reply, type ServedRoute } from '../http/routes.ts';
import { Refusal } from '../lib/errors.ts';
import { ROUTES } from '../schema/routes.ts';
import type { Door, DoorAnswer, DoorRequest } from './door-service.ts';
import { intentOf } from './reasons.ts';

/** The routes of the door (contract-2 section 17). */

const FROM = {
  method: ['x-forwarded-method', 'x-original-method'],
  uri: ['x-forwarded-uri', 'x-original-uri'],
};

/**
 * A header that the proxy sets. A proxy that sets one of two names passes the client's other one on, so both
 * must say the same.
 */
function forwarded(headers: IncomingHttpHeaders, names: readonly string[]): string | undefined {
  const [value, other] = names.map((name) => headerText(headers, name)).filter((text) => text !== null);
  if (other !== undefined && other !== value)
    throw new Refusal('invalid-request', {
      details: [`the proxy must set or remove ${names.join(' and ')}`],
    });
  return value;
}

/** Forwarded headers count only from a trusted proxy. The last host of a list is the nearest proxy's. */
function visitorOf({ headers, behindProxy, method, target, ...request }: HttpRequest): DoorRequest {
  const { requestId, https, limitKey } = request;
  const host = headers.host ?? '';
  const facts = { requestId, https, limitKey, headers };
  if (!behindProxy) return { ...facts, method, target, host, asked: target };
  const uri = forwarded(headers, FROM.uri) ?? null;
  return {
    ...facts,
    method: forwarded(headers, FROM.method) ?? 'GET',
    target: uri ?? '/',
    asked: uri,
    host: headerText(headers, 'x-forwarded-host')?.split(',').at(-1)?.trim() ?? host,
  };
}

const acceptSignature = (tag: string): string =>
  `sig1=("@authority" "signature-agent";key="sig1");created;expires;keyid;nonce;tag="${tag}"`;

const NO_STORE = { 'cache-control': 'no-store' } as const;

/** The client may read the answer: it learns that it was refused, and not what was found. */
function replyOf({ status, outcome, caseId, wait }: DoorAnswer, tag: string, reviewAt: string): Reply {
  if (status === 204) {
    const intent = intentOf(outcome);
    const verified = {
      'gpd-agent': outcome.agent ?? '',
      ...(intent !== null && { 'gpd-agent-intent': intent }),
    };
    const headers = { 'gpd-agent-status': outcome.status, ...(outcome.agent !== null && verified) };
    return { status, headers: { ...NO_STORE, ...headers }, body: '' };
  }
  const headers: Record<string, string> = {
    ...NO_STORE,
    'content-type': 'text/plain; charset=utf-8',
    'x-content-type-options': 'nosniff',
    'gpd-agent-case': caseId ?? '',
  };
  if (status === 401) headers['accept-signature'] = acceptSignature(tag);
  if (status === 429) headers['retry-after'] = String(wait);
  return {
    status,
    headers,
    body: `The site's policy for agents refused this request. Ask for a review: POST {"case": "${caseId}", "statement": "..."} to ${reviewAt}\n`,
  };
}

interface AgentRouteDeps {
  readonly door: Door;
  /** The first of GPD_WBA_TAGS. */
  readonly tag: string;
  /** URL under which clients reach this server. */
  readonly origin: () => string;
}

export const agentRoutes = ({ door, tag, origin }: AgentRouteDeps): readonly ServedRoute[] => [
  reply(ROUTES.checkAgent, async (call) =>
    replyOf(await door.check(visitorOf(call)), tag, `${origin()}${ROUTES.reviewAgent.path}`),
  ),
  json(ROUTES.verifyAgent, async ({ requestId, readBody }) => door.verify(await readBody(), requestId)),
];
