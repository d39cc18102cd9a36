import { z } from 'zod';
import { SECOND } from '../lib/clock.ts';
import { pubKeyResponseSchema } from '../schema/responses.ts';

/** Calls from the command line to a gpd server that the operator named. */

const TIMEOUT_MS = 10_000;
const answerSchema = z.looseObject({
  class: z.string().optional(),
  reason: z.string().optional(),
  error: z.string().optional(),
});

class RemoteFailed extends Error {
  override readonly name = 'RemoteFailed';
}

async function call(url: URL, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, { ...init, redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch (error) {
    throw new RemoteFailed(`${url.origin} does not answer: is the server running there?`, { cause: error });
  }
}

/** The published key of a tenant, 65 bytes; null: the server does not know the kid. */
export async function fetchPublicKey(base: string, kid: string): Promise<Buffer | null> {
  const url = new URL(`/_fp/pubkey?kid=${encodeURIComponent(kid)}`, base);
  const response = await call(url, {});
  if (response.status === 404) return null;
  if (response.status !== 200)
    throw new RemoteFailed(`${url.origin} answered ${response.status} to /_fp/pubkey`);
  return Buffer.from(pubKeyResponseSchema.parse(await response.json()).publicKey, 'base64');
}

/** Sends one bundle; `reason` is the error code if the ingest core did not answer. */
export async function postBundle(base: string, body: string, headers: Readonly<Record<string, string>>) {
  const url = new URL('/_fp/i/v1', base);
  const response = await call(url, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body,
  });
  const answer = answerSchema.safeParse(await response.json().catch(() => ({})));
  const { reason, error, class: visitorClass } = answer.success ? answer.data : {};
  return {
    status: response.status,
    reason: reason ?? error ?? `status-${response.status}`,
    class: visitorClass ?? null,
  };
}

const PROBE_MS = 3 * SECOND;

/**
 * A short request to a server that the operator named, for `gpd doctor` and `gpd status`. Null: no answer.
 * Redirects are not followed.
 */
export async function probe(url: string) {
  try {
    const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(PROBE_MS) });
    const date = Date.parse(response.headers.get('date') ?? '');
    return {
      status: response.status,
      /** The time in the answer; null: it has none. */
      date: Number.isNaN(date) ? null : date,
      text: await response.text(),
    };
  } catch {
    return null;
  }
}
