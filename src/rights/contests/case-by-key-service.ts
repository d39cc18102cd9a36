import { rightsRef } from '../../audit/audit-store.ts';
import type { Database } from '../../db/engine.ts';
import { findDecision } from '../../ingest/decisions-store.ts';
import { ruleText } from '../../ingest/verdict/classify.ts';
import { iso, isoTime } from '../../lib/clock.ts';
import { ALPHABET, hmacSha256Text, type Random } from '../../lib/crypto.ts';
import { Refusal } from '../../lib/errors.ts';
import type { PeopleLanguage } from '../../lib/languages.ts';
import type { CaseFiled, CaseFiling } from '../../schema/rights.ts';
import type { Installation } from '../../tenants/directory.ts';
import type { Tenant } from '../../tenants/tenant.ts';
import { siteName } from '../dsar/dsar.ts';
import { type RightsParts, reachOfRequests } from '../subject.ts';
import type { Contest } from './contest.ts';
import { dueDates, reasonsOf } from './record.ts';
import type { ContestService } from './service.ts';
import { findContest } from './store.ts';

/** Files, shows and answers a contest for a person who has its case key and no account. */

export interface CaseByKeyService {
  /**
   * Files a contest of the visit. A second one of the request answers the first, without a key.
   * @throws {Refusal} `unauthenticated`, `no-such-decision`, `too-many-cases`
   */
  file(visit: Visited, filing: CaseFiling): Promise<CaseFiled>;
  /** Shows the case. @throws {Refusal} `no-such-case` */
  view(caseKey: string): Promise<CaseView>;
  /** Answers the reviewer's question. @throws {Refusal} `no-such-case`, `case-closed` */
  answer(caseKey: string, text: string): Promise<CaseView>;
}

interface Parts extends Omit<RightsParts, 'clock'>, Pick<Installation, 'serverSecret'> {
  readonly contests: Pick<ContestService, 'file' | 'answer'>;
  /** Hashes a network under a key of the day. */
  readonly markNetwork: (network: string) => string;
}

type CaseView = Awaited<ReturnType<typeof caseResponse>>;

async function caseResponse(database: Database, { settings }: Tenant, contest: Contest) {
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
    site: siteName(contest.kid, settings),
    contact: settings['notice.contact'].trim() || null,
  };
}

/** Every key costs one look-up, whatever is wrong with it. @throws {Refusal} `no-such-case` */
async function openCase({ database, serverSecret, contestTexts, tenantOf }: Parts, caseKey: string) {
  const caseHash = hashCaseKey(serverSecret, caseKey);
  const contest = await findContest(database.read, contestTexts, { caseHash });
  // A writer of the database may have moved a hash to another row.
  const tenant = contest && tenantOf(contest.kid);
  if (contest?.caseHash !== caseHash || !tenant) throw new Refusal('no-such-case');
  return { contest, tenant };
}

/** The contested decision, and the network and language of the person who files. */
interface Visited extends Readonly<Record<'kid' | 'requestId' | 'network', string>> {
  readonly language: PeopleLanguage;
}

async function file(
  parts: Parts,
  { kid, requestId, network, language }: Visited,
  { statement, email }: CaseFiling,
): Promise<CaseFiled> {
  const { tenantOf, contests, serverSecret, random, markNetwork } = parts;
  const tenant = tenantOf(kid);
  if (!tenant) throw new Refusal('unauthenticated');
  const caseKey = createCaseKey(random);
  const caseHash = hashCaseKey(serverSecret, caseKey);
  const contest = await contests.file(
    reachOfRequests(kid, [requestId]),
    {
      requestId,
      statement,
      email: email ?? null,
      language: email === undefined ? null : language,
      caseHash,
      caseNetwork: markNetwork(network),
    },
    rightsRef(tenant.rightsKey, 'request', requestId),
  );
  const { contestId, status, filedAt } = contest;
  const { dueAt } = dueDates(contest);
  const filedCase = { contestId, requestId, status, filedAt: isoTime(filedAt), dueAt };
  return contest.caseHash === caseHash ? { ...filedCase, caseKey } : filedCase;
}

async function answer(parts: Parts, caseKey: string, text: string) {
  const { contest, tenant } = await openCase(parts, caseKey);
  const replier = { kid: contest.kid, ref: contest.filedBy, refusalIfMissing: 'no-such-case' } as const;
  return caseResponse(parts.database, tenant, await parts.contests.answer(replier, contest.contestId, text));
}

export const createCaseByKeyService = (parts: Parts): CaseByKeyService => ({
  file: (visit, filing) => file(parts, visit, filing),
  view: async (caseKey) => {
    const { contest, tenant } = await openCase(parts, caseKey);
    return caseResponse(parts.database, tenant, contest);
  },
  answer: (caseKey, text) => answer(parts, caseKey, text),
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
