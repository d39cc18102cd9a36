import { isUtf8 } from 'node:buffer';
import type { HotHandler, HotReply } from '../http/hot.ts';
import { errorReply } from '../http/reply.ts';
import type { WitnessAnswer } from './witness-service.ts';

/** `POST /add-checkpoint` (C2SP tlog-witness): text, and no JSON. */

const MAX_BODY_BYTES = 32_768;

const textReply = ({ status, body }: WitnessAnswer): HotReply => ({
  status,
  headers: {
    'content-type': status === 409 ? 'text/x.tlog.size' : 'text/plain; charset=utf-8',
    'cache-control': 'no-store',
  },
  body,
});

export function witnessLane(
  answer: (body: string) => Promise<WitnessAnswer>,
  onFault: (error: unknown) => void,
): HotHandler {
  return async (request) => {
    if (request.method !== 'POST') return errorReply('method-not-allowed', { allow: 'POST' });
    const bytes = await request.readBody(MAX_BODY_BYTES);
    if (!bytes) return errorReply('payload-too-large', { connection: 'close' });
    if (!isUtf8(bytes)) return textReply({ status: 400, body: '' });
    try {
      return textReply(await answer(bytes.toString()));
    } catch (error) {
      // Nothing is signed that is not kept: the log asks again.
      onFault(error);
      return errorReply('unavailable', { 'retry-after': '60' });
    }
  };
}
