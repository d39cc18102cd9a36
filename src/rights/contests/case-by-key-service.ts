import { rightsRef } from '../../audit/audit-store.ts';
import type { Database } from '../../db/engine.ts';
import { findDecision } from '../../ingest/decisions-store.ts';
import { ruleText } from '../../ingest/verdict/classify.ts';
import { iso, isoTime } from '../../lib/clock.ts';
import { ALPHABET, hmacSha256Text, type Random } from '../../lib/crypto.ts';
import { Refusal } from '../../lib/errors.ts';
import type { CaseFiled, CaseFiling } from '../../schema/rights.ts';
import { reachOfRequests } from '../subject.ts';
import type { Contest } from './contest.ts';
import { dueDates, reasonsOf } from './record.ts';
import type { ContestDeps, createContestService } from './service.ts';
import { findContest } from './store.ts';

/** A contest by its case key, without an account. */

export interface CaseDeps extends Omit<ContestDeps, 'clock'> {
  readonly serverSecret: Uint8Array;
  readonly contests: Pick<ReturnType<typeof createContestService>, 'file' | 'answer'>;
  /** Hashes a network under a key of the day. */
  readonly markNetwork: (network: string) => string;
}

export type CaseService = ReturnType<typeof createCaseService>;

async function caseResponse(database: Database, contest: Contest) {
  const { contestId, status, statement, question, answer, outcome } = contest;
  const decision = await findDecision(database, contest.kid, contest.requestId);
  const rules = decision?.verdict.rules ?? [];
  return {
    contestId,
    status,
    filedAt: isoTime(contest.filedAt),
    ...dueDates(contest),
    statement,
    question,
    askedAt: iso(contest.askedAt),
    answer,
    outcome,
    reasons: reasonsOf(contest),
    resolvedAt: iso(contest.resolvedAt),
    decision: {
      class: contest.class,
      // A resolved contest may outlive its decision.
      decidedAt: iso(decision?.verdict.decidedAt ?? null),
      rules: rules.map(({ id }) => ({ id, text: ruleText(id) })),
    },
  };
}

/** Every key costs one look-up, malformed or not. @throws {Refusal} `no-such-case` */
async function openCase({ database, serverSecret, contestTexts, tenantOf }: CaseDeps, caseKey: string) {
  const caseHash = hashCaseKey(serverSecret, caseKey);
  const contest = await findContest(database.read, contestTexts, { caseHash });
  // A writer of the database may have moved a hash to another row.
  if (contest?.caseHash !== caseHash || !tenantOf(contest.kid)) throw new Refusal('no-such-case');
  return contest;
}

/** The contested decision, and the network from which the person files. */
type Visited = Readonly<Record<'kid' | 'requestId' | 'network', string>>;

/**
 * A second contest of the request is answered with the first one, without a key.
 * @param filer whose browser files it, and from where
 * @throws {Refusal} `no-such-decision`, `too-many-cases`
 */
async function file(
  deps: CaseDeps,
  { kid, requestId, network }: Visited,
  { statement, email }: CaseFiling,
): Promise<CaseFiled> {
  const { tenantOf, contests, serverSecret, random, markNetwork } = deps;
  const tenant = tenantOf(kid);
  if (!tenant) throw new Refusal('unauthenticated');
  const caseKey = createCaseKey(random);
  const caseHash = hashCaseKey(serverSecret, caseKey);
  const contest = await contests.file(
    reachOfRequests(kid, [requestId]),
    { requestId, statement, email: email ?? null, caseHash, caseNetwork: markNetwork(network) },
    rightsRef(tenant.rightsKey, 'request', requestId),
  );
  const { contestId, status, filedAt } = contest;
  const { dueAt } = dueDates(contest);
  const filedCase = { contestId, requestId, status, filedAt: isoTime(filedAt), dueAt };
  return contest.caseHash === caseHash ? { ...filedCase, caseKey } : filedCase;
}

/** @throws {Refusal} `no-such-case` */
const view = async (deps: CaseDeps, caseKey: string) =>
  caseResponse(deps.database, await openCase(deps, caseKey));

/** @throws {Refusal} `no-such-case`, `case-closed` */
async function answer(deps: CaseDeps, caseKey: string, text: string) {
  const { kid, filedBy, contestId } = await openCase(deps, caseKey);
  const replier = { kid, ref: filedBy, refusalIfMissing: 'no-such-case' } as const;
  return caseResponse(deps.database, await deps.contests.answer(replier, contestId, text));
}

export const createCaseService = (deps: CaseDeps) => ({
  file: (visit: Visited, filing: CaseFiling) => file(deps, visit, filing),
  view: (caseKey: string) => view(deps, caseKey),
  answer: (caseKey: string, text: string) => answer(deps, caseKey, text),
});

const KEY_BYTES = 16;
const CHARACTERS = 26;
const GROUP = /.{5}(?=.)/g;

/** 128 bits as `XXXXX-` × 5 and `X`. */
export function createCaseKey(random: Random): string {
  const digits = BigInt(`0x${random(KEY_BYTES).toString('hex')}`).toString(32);
  const text = Array.from(digits, (digit) => ALPHABET.charAt(Number.parseInt(digit, 32))).join('');
  return text.padStart(CHARACTERS, '0').replace(GROUP, '$&-');
}

/** Ignores case, hyphens and spaces; Crockford's alphabet reads O as 0, and I and L as 1. */
const canonicalKey = (text: string): string =>
  text.replace(/[-\s]/g, '').toUpperCase().replaceAll('O', '0').replace(/[IL]/g, '1');

/**
 * Hashes a case key as rows store it: anyone who has the key reads the case and answers (contract-2 section
 * 15). Every text has a hash, so that a misspelt key costs the same look-up as a wrong one.
 */
export function hashCaseKey(serverSecret: Uint8Array, text: string): string {
  return hmacSha256Text(serverSecret, `gpd/case-key/v1|${canonicalKey(text)}`);
}
