import { SECOND } from '../lib/clock.ts';
import type { Address } from '../lib/ip.ts';
import { publicOnly } from './guard.ts';
import { anywhere, call, readBody } from './send.ts';

const TIMEOUT_MS = 10 * SECOND;
const MAX_ANSWER_BYTES = 16_384;

/**
 * Asks a witness that the operator named for its cosignature: https anywhere, plain http inside the perimeter alone.
 * @throws {EgressRefused} with a reason that quotes nothing of the answer
 */
export async function addCheckpoint(
  prefix: string,
  body: string,
): Promise<{ readonly status: number; readonly text: string }> {
  const options = {
    method: 'POST',
    headers: { 'content-length': Buffer.byteLength(body), 'user-agent': 'gpd' },
    body,
    signal: AbortSignal.timeout(TIMEOUT_MS),
    allow: anywhere,
    allowPlain: (address: Address) => !publicOnly(address),
  };
  return call(`${prefix}/add-checkpoint`, options, async (response) => ({
    status: response.statusCode ?? 0,
    text: (await readBody(response, MAX_ANSWER_BYTES)).toString(),
  }));
}
