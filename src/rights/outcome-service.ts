import type { Database } from '../db/db.ts';
import { type Clock, isoTime } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import type { Answer } from '../schema/answer.ts';
import type { outcomeRequestSchema } from '../schema/responses.ts';
import { insertOutcome } from './outcome-store.ts';

export type OutcomeReporter = ReturnType<typeof makeOutcomeReporter>;

/**
 * POST /v1/decisions/{id}/outcome. Without `at` it is the time at which it came in, and any time is the same.
 * @param maxSkewMs by how much the caller's clock may be ahead of ours
 */
export const makeOutcomeReporter =
  (database: Database, clock: Clock, maxSkewMs: number) =>
  async (kid: string, requestId: string | null, body: Answer<typeof outcomeRequestSchema>) => {
    const now = clock();
    const at = body.at === undefined ? now : Date.parse(body.at);
    if (at < 0 || at > now + maxSkewMs)
      throw new Refusal('invalid-request', { details: ['at: an instant from 1970 to now'] });
    const stored = requestId === null ? null : await insertOutcome(database, { ...body, kid, requestId, at });
    if (requestId === null || stored === null) throw new Refusal('no-such-decision');
    if (stored.outcome !== body.outcome || (body.at !== undefined && stored.at !== at))
      throw new Refusal('idempotency-conflict');
    return { ...stored, requestId, at: isoTime(stored.at) };
  };
