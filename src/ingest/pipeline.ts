import type { GrantClaim } from '../consent/doubts.ts';
import type { ConsentState, IngestReason } from '../schema/responses.ts';
import { consentGate } from './consent-gate.ts';
import { isFresh } from './freshness.ts';
import { readOpened } from './open.ts';
import type { IngestDeps, Sighting } from './ports.ts';
import { type IngestAnswer, refusal, verdictResponse } from './respond.ts';
import { readFacts } from './verdict/facts.ts';
import { identify } from './verdict/identity.ts';
import { classify } from './verdict/score.ts';

interface Stage {
  /** Pure but for a stage that touches the world. */
  readonly run: (...values: never[]) => unknown;
  readonly refuses: readonly Exclude<IngestReason, 'ok'>[];
  readonly touchesWorld?: true;
}

/**
 * The stages of ingest, in the order in which they run. Cheap refusals come first, and nothing is written before `record`.
 * The frames evaluate.ts and record.ts call them: the bundle is garbage before the first stage that waits (ADR 0016, 0033).
 */
export const STAGES = {
  open: { run: readOpened, refuses: ['decrypt-failed', 'unknown-key'] },
  freshness: { run: isFresh, refuses: ['stale'] },
  'consent gate': { run: consentGate, refuses: ['consent-missing'] },
  network: { run: readFacts, refuses: [] },
  identity: { run: identify, refuses: [] },
  classify: { run: classify, refuses: [] },
  /** Asks the ledger, where the tenant wants consent proven. */
  'consent proof': {
    run: (deps: IngestDeps, claim: Parameters<IngestDeps['proveConsent']>[0]) => deps.proveConsent(claim),
    refuses: ['consent-missing'],
    touchesWorld: true,
  },
  /** The grant in the ledger that the bundle names. */
  grant: {
    run: (deps: IngestDeps, claim: GrantClaim) => deps.grants.find(claim),
    refuses: [],
    touchesWorld: true,
  },
  /** Claims the signature's nonce. Never refuses: a bad signature declares nobody. */
  'bot auth': {
    run: (deps: IngestDeps, ...request: Parameters<IngestDeps['botAuth']>) => deps.botAuth(...request),
    refuses: [],
    touchesWorld: true,
  },
  /** Looks up the device, decides on that and writes, in one transaction. The other two: the tenant was removed meanwhile. */
  record: {
    run: (deps: IngestDeps, sighting: Sighting) => deps.recorder.record(sighting),
    refuses: ['replay', 'stale', 'decrypt-failed', 'unknown-key'],
    touchesWorld: true,
  },
  /** Notes on that grant who gave it. */
  doubt: {
    run: (deps: IngestDeps, ...verdict: Parameters<IngestDeps['grants']['note']>) =>
      deps.grants.note(...verdict),
    refuses: [],
    touchesWorld: true,
  },
  respond: { run: verdictResponse, refuses: [] },
} as const satisfies Readonly<Record<string, Stage>>;

type Stages = typeof STAGES;

/** A refusal that the table has for the stage. */
export function refuse<Name extends keyof Stages>(
  _stage: Name,
  reason: Stages[Name]['refuses'][number],
  requestId: string,
  consentState?: ConsentState,
): IngestAnswer {
  return refusal(reason, requestId, consentState);
}
