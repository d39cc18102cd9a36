import { toJson } from './json.ts';
import { isUnavailable, type Reply, request, unavailable } from './request.ts';
import type { Identified, IngestResponse, SealedBundle, Unavailable } from './types.ts';

/** Only the core answers with both; every other body is an error of the shape `{error}`. */
function isIngestResponse(body: unknown): body is IngestResponse {
  const { reason, requestId } = (body ?? {}) as Record<string, unknown>;
  return typeof reason === 'string' && typeof requestId === 'string';
}

function readReply(reply: Reply): Identified | Unavailable {
  if (!isIngestResponse(reply.body)) return unavailable('refused', reply);
  // A named element of the page may hide the document's own method.
  if (reply.body.askAgain) EventTarget.prototype.dispatchEvent.call(document, new Event('gpd-ask-again'));
  return { sent: true, status: reply.status, response: reply.body };
}

/** POST /_fp/i/v1. The cookie is sent and comes back: the transparency token is bound to it. */
export async function send(
  endpoint: string,
  bundle: SealedBundle,
  signal: AbortSignal,
): Promise<Identified | Unavailable> {
  const reply = await request(`${endpoint}/_fp/i/v1`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    credentials: 'include',
    cache: 'no-store',
    body: toJson(bundle),
    signal,
  });
  return isUnavailable(reply) ? reply : readReply(reply);
}
