import { rightsRef } from '../../audit/audit-store.ts';
import type { Database } from '../../db/engine.ts';
import { decisionKey, findDecision, tenantOfDecision } from '../../ingest/decisions-store.ts';
import { AT_DOOR } from '../../ingest/verdict/verdict.ts';
import { ruleText } from '../../ingest/verdict/verdict-words.ts';
import { iso, isoTime } from '../../lib/clock.ts';
import { ALPHABET, hmacSha256Text, type Random } from '../../lib/crypto.ts';
import { Refusal } from '../../lib/errors.ts';
import type { PeopleLanguage } from '../../lib/languages.ts';
import type { CaseFiled, CaseFiling, ComplaintFiled } from '../../schema/rights.ts';
import type { Installation } from '../../tenants/directory.ts';
import type { Tenant } from '../../tenants/tenant.ts';
import { siteName } from '../dsar/dsar.ts';
import { type RightsParts, reachOfRequests } from '../subject.ts';
import type { CaseKind, Contest } from './contest.ts';
import { complaintResponse, dueDates, kindOf, reasonsOf } from './record.ts';
import type { ContestService } from './service.ts';
import { findContest } from './store.ts';

/** Files, shows and answers a case for a person who has its case key and no account. */

export interface CaseByKeyService {
  /**
   * Files a contest of the visit. A second one of the request answers the first, without a key.
   * @throws {Refusal} `unauthenticated`, `no-such-decision`, `too-many-cases`
   */
  file(visit: Visited, filing: CaseFiling): Promise<CaseFiled>;
  /** Files a complaint about how data are handled, as `file` files a contest. @throws {Refusal} as `file` */
  complain(visit: Visited, filing: CaseFiling): Promise<ComplaintFiled>;
  /**
   * Files a complaint for a person who has the key of another case.
   * @throws {Refusal} `no-such-case`, `invalid-request` but under rights.profile uk, `too-many-cases`
   */
  complainByKey(
    caseKey: string,
    from: Omit<Visited, 'kid' | 'requestId'>,
    filing: CaseFiling,
  ): Promise<ComplaintFiled>;
  /**
   * Files a review of a refusal at the door, for anybody who has its number.
   * @throws {Refusal} `no-such-decision`, `too-many-cases`
   */
  fileForAgent(requestId: string, network: string, filing: CaseFiling): Promise<CaseFiled>;
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

async function readDecision(database: Database, { kid, requestId, class: name }: Contest) {
  const decision = await findDecision(database, kid, requestId);
  const rules = decision?.verdict.rules ?? [];
  return {
    class: name,
    // A resolved case may outlive its decision.
    decidedAt: iso(decision?.verdict.decidedAt ?? null),
    rules: rules.map(({ id }) => ({ id, text: ruleText(id) })),
  };
}

async function caseResponse(database: Database, { settings }: Tenant, contest: Contest) {
  const { contestId, status, statement, question, answer, outcome } = contest;
  const pageFacts = {
    site: siteName(contest.kid, settings),
    contact: settings['notice.contact'].trim() || null,
  };
  const decision = await readDecision(database, contest);
  if (contest.kind === 'complaint') {
    const { requestId: _, version: _version, resolvedBy: _by, ...complaint } = complaintResponse(contest);
    return { ...complaint, askedAt: iso(contest.askedAt), answer, decision, ...pageFacts };
  }
  return {
    ...kindOf(contest),
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
    decision,
    ...pageFacts,
    ...(settings['rights.profile'] === 'uk' && { takesComplaints: true as const }),
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

/** @returns the case, with its key unless it was filed before */
async function fileOfKind(
  parts: Parts,
  kind: CaseKind,
  { kid, requestId, network, language }: Visited,
  { statement, email }: CaseFiling,
) {
  const { tenantOf, contests, serverSecret, random, markNetwork } = parts;
  const tenant = tenantOf(kid);
  if (!tenant) throw new Refusal('unauthenticated');
  const caseKey = createCaseKey(random);
  const caseHash = hashCaseKey(serverSecret, caseKey);
  const contest = await contests.file(
    reachOfRequests(kid, [requestId]),
    {
      kind,
      requestId,
      statement,
      email: email ?? null,
      language: email === undefined ? null : language,
      caseHash,
      caseNetwork: markNetwork(network),
    },
    rightsRef(tenant.rightsKey, 'request', requestId),
  );
  return { contest, ...(contest.caseHash === caseHash && { caseKey }) };
}

async function file(parts: Parts, visit: Visited, filing: CaseFiling): Promise<CaseFiled> {
  const { contest, ...key } = await fileOfKind(parts, 'contest', visit, filing);
  const { contestId, requestId, status, filedAt } = contest;
  const { dueAt } = dueDates(contest);
  return { contestId, requestId, status, filedAt: isoTime(filedAt), dueAt, ...key };
}

async function complain(parts: Parts, visit: Visited, filing: CaseFiling): Promise<ComplaintFiled> {
  const { contest, ...key } = await fileOfKind(parts, 'complaint', visit, filing);
  const { contestId, kind, requestId, status, filedAt, acknowledgeBy } = complaintResponse(contest);
  return { contestId, kind, requestId, status, filedAt, acknowledgeBy, ...key };
}

async function complainByKey(
  parts: Parts,
  caseKey: string,
  from: Omit<Visited, 'kid' | 'requestId'>,
  filing: CaseFiling,
) {
  const { contest, tenant } = await openCase(parts, caseKey);
  if (tenant.settings['rights.profile'] !== 'uk')
    throw new Refusal('invalid-request', { details: ['this site takes complaints at its own address'] });
  const { kid, requestId } = contest;
  return complain(parts, { kid, requestId, ...from }, filing);
}

async function answer(parts: Parts, caseKey: string, text: string) {
  const { contest, tenant } = await openCase(parts, caseKey);
  const replier = { kid: contest.kid, ref: contest.filedBy, refusalIfMissing: 'no-such-case' } as const;
  return caseResponse(parts.database, tenant, await parts.contests.answer(replier, contest.contestId, text));
}

async function fileForAgent(parts: Parts, requestId: string, network: string, filing: CaseFiling) {
  const { database, tenantOf } = parts;
  const kid = await tenantOfDecision(database, requestId);
  const decision = kid === null || !tenantOf(kid) ? null : await decisionKey(database.read, kid, requestId);
  // A visit is contested with its own credentials.
  if (kid === null || decision?.class !== AT_DOOR) throw new Refusal('no-such-decision');
  return file(parts, { kid, requestId, network, language: 'en' }, filing);
}

export const createCaseByKeyService = (parts: Parts): CaseByKeyService => ({
  file: (visit, filing) => file(parts, visit, filing),
  complain: (visit, filing) => complain(parts, visit, filing),
  complainByKey: (caseKey, from, filing) => complainByKey(parts, caseKey, from, filing),
  fileForAgent: (requestId, network, filing) => fileForAgent(parts, requestId, network, filing),
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
