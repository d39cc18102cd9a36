import { SECOND } from '../lib/clock.ts';
import { publicOnly } from './guard.ts';
import { anywhere, readBody, send, whyRefused } from './send.ts';

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
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const headers = { 'content-length': Buffer.byteLength(body), 'user-agent': 'gpd' };
  try {
    const response = await send(new URL(`${prefix}/add-checkpoint`), {
      method: 'POST',
      headers,
      body,
      signal,
      allow: anywhere,
      allowPlain: (address) => !publicOnly(address),
    });
    return {
      status: response.statusCode ?? 0,
      text: (await readBody(response, MAX_ANSWER_BYTES)).toString(),
    };
  } catch (error) {
    throw whyRefused(error, signal);
  }
}
