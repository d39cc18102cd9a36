import { recordAudit, rightsRef } from '../../audit/audit-store.ts';
import { joinedRefs } from '../../consent/join-store.ts';
import { listHistory } from '../../consent/openings-store.ts';
import { wordsOf } from '../../consent/purpose-words.ts';
import { listState } from '../../consent/terms-store.ts';
import type { Reader } from '../../db/engine.ts';
import { classByRules, explain } from '../../ingest/verdict/classify.ts';
import { visitorIdOf } from '../../ingest/verdict/identity.ts';
import type { Verdict } from '../../ingest/verdict/verdict.ts';
import { changeText, classText, deciderText, ruleText } from '../../ingest/verdict/verdict-words.ts';
import type { Actor } from '../../lib/act.ts';
import { DAY, iso, isoTime } from '../../lib/clock.ts';
import { pagesBy } from '../../lib/collections.ts';
import { Refusal } from '../../lib/errors.ts';
import { isLoopback } from '../../lib/ip.ts';
import type { PeopleLanguage } from '../../lib/languages.ts';
import { ENGLISH, type Speaker } from '../../lib/people/say.ts';
import { listWebhooks } from '../../notify/webhooks-store.ts';
import type { Tenant } from '../../tenants/tenant.ts';
import type { Contest } from '../contests/contest.ts';
import { heldComplaint, heldContest } from '../contests/record.ts';
import type { Reach, RightsParts } from '../subject.ts';
import { createNotice, siteName } from './dsar.ts';
import {
  countDecisions,
  type HeldDecision,
  type HeldDevice,
  readContests,
  readDecisions,
  readDevice,
  readLinks,
  readOverride,
} from './store.ts';

/** Gathers the data stored about a subject: exactly the rows that an erasure would delete. */

type Parts = Omit<RightsParts, 'random'>;

export type DsarDecision = ReturnType<typeof describeDecision>;
export type Dsar = NonNullable<Awaited<ReturnType<typeof gatherDsar>>>;
/** Everything but the decisions, which come in pages. */
export type DsarHead = Dsar['head'];

const HISTORY_PAGE = 500;
const HOW_TO_CONTEST =
  'In the browser of this visit, on the page /my-data or by POST /me with the action contest; with an account of this site, where it ' +
  'has a sign-in, by POST /privacy/contest with this requestId. A person will review it by the due date in the answer.';

const dateOf = (day: number): string => isoTime(day * DAY).slice(0, 10);
const timeOf = (at: number): string | null => (at === 0 ? null : isoTime(at));

function describeDevice(device: HeldDevice) {
  return {
    firstSeenAt: timeOf(device.firstSeenAt),
    lastSeenAt: timeOf(device.lastSeenAt),
    seen: device.seen,
    passkey: device.passkey && {
      deviceBound: device.passkey.deviceBound,
      createdAt: isoTime(device.passkey.createdAt),
      lastUsedAt: isoTime(device.passkey.lastUsedAt),
    },
    visitorIds: device.visitorIds,
    networksByDay: device.networks.map(({ day, networks }) => ({ day: dateOf(day), networks })),
  };
}

/** Names the decisive rules, or what decided in place of them: a review, a signature, a policy for agents. */
export function whatWouldHaveChanged(verdict: Verdict, language: PeopleLanguage) {
  const { overridden, declaredAgentId, door } = verdict;
  if (door) return { text: deciderText('door', '', language), decisive: [], withoutAll: null };
  if (overridden || declaredAgentId !== null) {
    const text = deciderText(overridden ? 'reviewed' : 'signed', classByRules(verdict), language);
    return { text, decisive: [], withoutAll: null };
  }
  const counterfactual = explain(verdict);
  return { text: changeText(counterfactual, language), ...counterfactual };
}

/** @param language of the texts of class, rules and what would have changed */
export function describeDecision(
  decision: HeldDecision,
  tenant: Tenant,
  contest: Contest | undefined,
  language: PeopleLanguage = 'en',
) {
  const { verdict } = decision;
  const { durable, epoch } = verdict;
  return {
    requestId: decision.requestId,
    decidedAt: isoTime(verdict.decidedAt),
    class: verdict.class,
    classText: classText(verdict.class, language),
    visitorId: durable === null || epoch === null ? null : visitorIdOf(tenant, durable, epoch),
    declaredAgentId: verdict.declaredAgentId,
    confidence: verdict.confidence,
    suspectScore: verdict.suspectScore,
    smartSignals: verdict.smartSignals,
    needsAttestation: verdict.needsAttestation,
    attested: verdict.attested ?? null,
    consentState: verdict.consentState,
    rules: verdict.rules.map(({ id, weight, kind }) => ({ id, weight, kind, text: ruleText(id, language) })),
    defenses: verdict.defenses,
    policyVersion: verdict.policyVersion,
    overridden: verdict.overridden,
    // Nobody should act on the decision.
    restricted: contest?.kind === 'contest' && contest.status === 'open',
    contestId: contest?.kind === 'contest' ? contest.contestId : null,
    whatWouldHaveChanged: whatWouldHaveChanged(verdict, language),
    howToContest: HOW_TO_CONTEST,
    signals: decision.summary,
    supersededBy: decision.supersededBy ?? null,
    context: verdict.context ?? null,
    reportedOutcome: decision.reported ? { ...decision.reported, at: isoTime(decision.reported.at) } : null,
  };
}

async function readHistory(
  database: Reader,
  tenant: Tenant,
  principals: readonly string[],
): Promise<readonly object[]> {
  const history: object[] = [];
  const readPage = (after: { readonly seq: number } | undefined) =>
    listHistory(database, tenant, principals, { before: after?.seq ?? null, limit: HISTORY_PAGE });
  for await (const events of pagesBy(HISTORY_PAGE, readPage))
    for (const { seq, purpose, choice, at, detail } of events)
      history.push({ seq, type: `consent.${choice}`, purpose, time: isoTime(at), ...detail });
  return history;
}

async function readConsent(database: Reader, tenant: Tenant, { kid, principal, principalId }: Reach) {
  if (principal === null || principalId === null) return null;
  const principals = await joinedRefs(database, tenant, principal);
  const history = await readHistory(database, tenant, principals);
  if (history.length === 0) return null;
  const state = (await listState(database, kid, principals)).map(({ purpose, choice, at, ...rest }) => {
    const { policyVersion, expiresAt, seq, hash, given: consentGiven } = rest;
    const expiresAtText = iso(expiresAt);
    return {
      purpose,
      choice,
      at: isoTime(at),
      policyVersion,
      expiresAt: expiresAtText,
      proof: { seq, hash },
      given: consentGiven,
    };
  });
  return { principalId, state, history };
}

/** Data other than decisions; null when there are no decisions either. */
async function readHeld(database: Reader, { contestTexts }: Parts, tenant: Tenant, reach: Reach) {
  const { kid, durable, principal } = reach;
  const heldReach = { durable, linked: [...reach.linked] };
  const device = durable === null ? null : await readDevice(database, kid, durable);
  const total = await countDecisions(database, kid, heldReach);
  const cases = await readContests(database, contestTexts, kid, heldReach);
  const override = await readOverride(database, kid, heldReach);
  const links = principal === null ? [] : await readLinks(database, kid, principal);
  const consent = await readConsent(database, tenant, reach);
  const hasNoRows = !device && total === 0 && cases.length === 0 && !override;
  if (hasNoRows && links.length === 0 && !consent) return null;
  return { where: heldReach, device, total, cases, override, links, consent };
}

function referenceOf({ rightsKey }: Tenant, { durable, principal, linked }: Reach): string {
  if (durable !== null) return rightsRef(rightsKey, 'durable', durable);
  if (principal !== null) return rightsRef(rightsKey, 'principal', principal);
  const [request = ''] = linked;
  return rightsRef(rightsKey, 'request', request);
}

/** Webhooks to this machine stay with the operator. */
async function readRecipients(database: Reader, kid: string): Promise<string[]> {
  const webhooks = await listWebhooks(database, kid);
  return [...new Set(webhooks.map(({ url }) => new URL(url).hostname))].filter((host) => !isLoopback(host));
}

export async function readNotice(database: Reader, { kid, settings, purposes }: Tenant, speaker = ENGLISH) {
  const titles = purposes.map((purpose) => wordsOf(purpose, speaker.lang).title);
  return createNotice(settings, titles, await readRecipients(database, kid), speaker);
}

/** The notice with the name of the site, for a page in the language of its reader. */
export async function readPageNotice(database: Reader, tenant: Tenant, speaker: Speaker) {
  return { ...(await readNotice(database, tenant, speaker)), site: siteName(tenant.kid, tenant.settings) };
}

/** Null when nothing at all is held. Its reads hold no connection that checks and visits need. */
export async function gatherDsar(deps: Parts, reach: Reach) {
  const { kid } = reach;
  const tenant = deps.tenantOf(kid);
  const database: Reader = { read: deps.database.longRead };
  const heldData = tenant && (await readHeld(database, deps, tenant, reach));
  if (!heldData) return null;
  const { where: heldReach, device, total, cases, override, links, consent } = heldData;
  const contests = cases.filter(({ kind }) => kind === 'contest');
  const complaints = cases.filter(({ kind }) => kind === 'complaint');
  const byRequest = new Map(contests.map((contest) => [contest.requestId, contest]));
  return {
    total,
    head: {
      subject: {
        // A receipt of erasure names the same reference.
        reference: referenceOf(tenant, reach),
        tenant: kid,
        visitorId: reach.visitorId,
        device: device && describeDevice(device),
        linkedRequests: links.map(({ requestId, linkedAt }) => ({ requestId, linkedAt: isoTime(linkedAt) })),
      },
      generatedAt: isoTime(deps.clock()),
      override: override && { neverAutomation: true as const, createdAt: isoTime(override.createdAt) },
      contests: contests.map(heldContest),
      complaints: complaints.map(heldComplaint),
      consent,
      notice: await readNotice(database, tenant),
    },
    /** @param language of a page; exports as data are in English */
    async *decisions(language: PeopleLanguage = 'en'): AsyncGenerator<readonly DsarDecision[]> {
      for await (const page of readDecisions(database, kid, heldReach))
        yield page.map((one) => describeDecision(one, tenant, byRequest.get(one.requestId), language));
    },
  };
}

/** Gathers for a person who looks. @throws {Refusal} `no-data` */
export async function requireDsar(deps: Parts, reach: Reach): Promise<Dsar> {
  const dsar = await gatherDsar(deps, reach);
  if (!dsar) throw new Refusal('no-data');
  return dsar;
}

/** Exports for the person, and writes the audit row. @throws {Refusal} `no-data` */
export async function exportDsar(deps: Parts, reach: Reach, actor: Actor): Promise<Dsar> {
  const dsar = await requireDsar(deps, reach);
  await recordAudit(deps.database, {
    kid: reach.kid,
    at: deps.clock(),
    actor,
    object: dsar.head.subject.reference,
    action: 'dsar.exported',
    detail: { decisions: dsar.total },
  });
  return dsar;
}

/** Yields one JSON object while the data is read. */
export async function* dsarJson(dsar: Dsar): AsyncGenerator<string> {
  const { subject, generatedAt, ...rest } = dsar.head;
  yield `{"subject":${JSON.stringify(subject)},"generatedAt":${JSON.stringify(generatedAt)},"decisions":[`;
  let isFirst = true;
  for await (const page of dsar.decisions()) {
    for (const decision of page) {
      yield `${isFirst ? '' : ','}${JSON.stringify(decision)}`;
      isFirst = false;
    }
  }
  yield `],${JSON.stringify(rest).slice(1)}`;
}
