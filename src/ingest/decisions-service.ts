import type { Directory } from '../app/directory.ts';
import type { Database } from '../db/db.ts';
import type { FindApiKey } from '../http/caller.ts';
import { type Clock, isoTime } from '../lib/clock.ts';
import type { DecisionResponse } from '../schema/responses.ts';
import { makeApiKeyStore } from '../tenants/api-key-store.ts';
import { makeUnknownKeys } from '../tenants/unknown-keys.ts';
import { ruleText } from './classify/policy.ts';
import { CALM_SCORE } from './decide.ts';
import { findDecision } from './decision-store.ts';
import { visitorIdOf } from './identity.ts';
import { verdictResponse } from './respond.ts';
import type { Verdict } from './verdict.ts';

/** As every later verdict under the override (contract 3.4): an overturned decision calls nobody a bot any more. */
function reconcile(verdict: Verdict): Verdict {
  if (verdict.class !== 'undeclared_automation' && verdict.class !== 'unknown') return verdict;
  return {
    ...verdict,
    class: 'human',
    smartSignals: { ...verdict.smartSignals, bot: false },
    suspectScore: Math.min(verdict.suspectScore, CALM_SCORE),
  };
}

/** The stored verdict as the backend reads it; the visitorId is computed again and never stored beside it. */
export function makeDecisionFinder(
  database: Database,
  directory: Directory,
): (kid: string, requestId: string) => Promise<DecisionResponse | null> {
  return async (kid, requestId) => {
    const tenant = directory.tenant(kid);
    const stored = await findDecision(database, kid, requestId);
    if (!tenant || !stored) return null;
    const { restricted, overturned } = stored;
    const verdict = overturned ? reconcile(stored.verdict) : stored.verdict;
    const { durable, epoch } = verdict;
    const visitorId = durable === null || epoch === null ? null : visitorIdOf(tenant, durable, epoch);
    return {
      ...verdictResponse(verdict, visitorId),
      rules: verdict.rules.map(({ id, weight }) => ({ id, weight, text: ruleText(id) })),
      policyVersion: verdict.policyVersion,
      decidedAt: isoTime(verdict.decidedAt),
      restricted,
    };
  };
}

/**
 * Finds a key by its secret and notes its use to the day: one write a key and day, beside the request; a failed one is
 * tried with the next call.
 */
export function makeKeyUse(
  database: Database,
  directory: Directory,
  refresh: () => Promise<void>,
  clock: Clock,
): FindApiKey {
  const find = makeUnknownKeys({ known: (secret) => directory.apiKey(secret), refresh });
  const noted = new Map<string, string>();
  const store = makeApiKeyStore(database);
  return async (secret, client) => {
    const key = await find(secret, client);
    if (!key) return null;
    const day = isoTime(clock()).slice(0, 10);
    if (key.lastUsedOn !== day && noted.get(key.id) !== day) {
      noted.set(key.id, day);
      store.touch(key.kid, key.id, day).catch(() => noted.delete(key.id));
    }
    return key;
  };
}
