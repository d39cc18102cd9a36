import { rightsRef } from '../../audit/audit.ts';
import { recordAudit } from '../../audit/store.ts';
import { listHistory, listState } from '../../consent/terms-store.ts';
import type { Database } from '../../db/db.ts';
import { visitorIdOf } from '../../ingest/verdict/identity.ts';
import { ruleText } from '../../ingest/verdict/policy.ts';
import { classByRules, explain } from '../../ingest/verdict/score.ts';
import type { Verdict } from '../../ingest/verdict/verdict.ts';
import type { Actor } from '../../lib/act.ts';
import { DAY, iso, isoTime } from '../../lib/clock.ts';
import { pagesBy } from '../../lib/collections.ts';
import { Refusal } from '../../lib/errors.ts';
import { isLoopback } from '../../lib/ip.ts';
import { listWebhooks } from '../../notify/webhooks.ts';
import type { Tenant } from '../../tenants/tenant.ts';
import type { Contest } from '../contests/contest.ts';
import { heldContest } from '../contests/record.ts';
import type { ContestDeps } from '../contests/service.ts';
import type { Reach } from '../subject.ts';
import { changeText, classText, makeNotice, quotedClass } from './dsar.ts';
import {
  countDecisions,
  type HeldDecision,
  type HeldDevice,
  heldContests,
  heldDecisions,
  heldDevice,
  heldLinks,
  heldOverride,
} from './store.ts';

/** Gathers what is held about a subject. It reads what an erasure would delete, and nothing else. */

export type DsarDeps = Omit<ContestDeps, 'random'>;

export type DsarDecision = ReturnType<typeof describeDecision>;
export type Dsar = NonNullable<Awaited<ReturnType<typeof gather>>>;
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

/** Where a review or an agent's signature decided, that is said, and what the rules alone would have. */
function whatWouldHaveChanged(verdict: Verdict) {
  const { overridden, declaredAgentId } = verdict;
  if (overridden || declaredAgentId !== null) {
    const decider = overridden ? 'A review decided.' : 'The agent’s signature decided.';
    const text = `${decider} The rules alone would have said ${quotedClass(classByRules(verdict))}.`;
    return { text, decisive: [], withoutAll: null };
  }
  const counterfactual = explain(verdict);
  return { text: changeText(counterfactual, ruleText), ...counterfactual };
}

export function describeDecision(held: HeldDecision, tenant: Tenant, contest: Contest | undefined) {
  const { verdict } = held;
  const { durable, epoch } = verdict;
  return {
    requestId: held.requestId,
    decidedAt: isoTime(verdict.decidedAt),
    class: verdict.class,
    classText: classText(verdict.class),
    visitorId: durable === null || epoch === null ? null : visitorIdOf(tenant, durable, epoch),
    declaredAgentId: verdict.declaredAgentId,
    confidence: verdict.confidence,
    suspectScore: verdict.suspectScore,
    smartSignals: verdict.smartSignals,
    needsAttestation: verdict.needsAttestation,
    attested: verdict.attested ?? null,
    consentState: verdict.consentState,
    rules: verdict.rules.map(({ id, weight, kind }) => ({ id, weight, kind, text: ruleText(id) })),
    defenses: verdict.defenses,
    policyVersion: verdict.policyVersion,
    overridden: verdict.overridden,
    // Nobody should act on the decision.
    restricted: contest?.status === 'open',
    contestId: contest?.contestId ?? null,
    whatWouldHaveChanged: whatWouldHaveChanged(verdict),
    howToContest: HOW_TO_CONTEST,
    signals: held.summary,
    supersededBy: held.supersededBy ?? null,
    reportedOutcome: held.reported ? { ...held.reported, at: isoTime(held.reported.at) } : null,
  };
}

async function historyOf(database: Database, kid: string, principal: string): Promise<readonly object[]> {
  const history: object[] = [];
  const read = (after: { readonly seq: number } | undefined) =>
    listHistory(database, kid, principal, { before: after?.seq ?? null, limit: HISTORY_PAGE });
  for await (const events of pagesBy(HISTORY_PAGE, read))
    for (const { seq, purpose, choice, at, detail } of events)
      history.push({ seq, type: `consent.${choice}`, purpose, time: isoTime(at), ...detail });
  return history;
}

async function consentOf(database: Database, { kid, principal, principalId }: Reach) {
  if (principal === null || principalId === null) return null;
  const history = await historyOf(database, kid, principal);
  if (history.length === 0) return null;
  const state = (await listState(database, kid, principal)).map(({ purpose, choice, at, ...rest }) => {
    const { policyVersion, expiresAt, seq, hash, given } = rest;
    const until = iso(expiresAt);
    return { purpose, choice, at: isoTime(at), policyVersion, expiresAt: until, proof: { seq, hash }, given };
  });
  return { principalId, state, history };
}

/** Data other than decisions; null when there are no decisions either. */
async function readHeld({ database, contestTexts }: DsarDeps, reach: Reach) {
  const { kid, durable, principal } = reach;
  const where = { durable, linked: [...reach.linked] };
  const device = durable === null ? null : await heldDevice(database, kid, durable);
  const total = await countDecisions(database, kid, where);
  const contests = await heldContests(database, contestTexts, kid, where);
  const override = await heldOverride(database, kid, where);
  const links = principal === null ? [] : await heldLinks(database, kid, principal);
  const consent = await consentOf(database, reach);
  const nothing = !device && total === 0 && contests.length === 0 && !override;
  if (nothing && links.length === 0 && !consent) return null;
  return { where, device, total, contests, override, links, consent };
}

function referenceOf({ rightsKey }: Tenant, { durable, principal, linked }: Reach): string {
  if (durable !== null) return rightsRef(rightsKey, 'durable', durable);
  if (principal !== null) return rightsRef(rightsKey, 'principal', principal);
  const [request = ''] = linked;
  return rightsRef(rightsKey, 'request', request);
}

/** Webhooks to this machine stay with the operator. */
async function recipientsOf(database: Database, kid: string): Promise<string[]> {
  const all = await listWebhooks(database, kid);
  return [...new Set(all.map(({ url }) => new URL(url).hostname))].filter((host) => !isLoopback(host));
}

export async function noticeOf(database: Database, { kid, settings, purposes }: Tenant) {
  const titles = purposes.map(({ title }) => title);
  return makeNotice(settings, titles, await recipientsOf(database, kid));
}

/** Null when nothing at all is held. Its reads hold no connection that checks and visits need. */
export async function gather(deps: DsarDeps, reach: Reach) {
  const { kid } = reach;
  const tenant = deps.tenantOf(kid);
  const database = { ...deps.database, read: deps.database.longRead };
  const held = tenant && (await readHeld({ ...deps, database }, reach));
  if (!held) return null;
  const { where, device, total, contests, override, links, consent } = held;
  const byRequest = new Map(contests.map((contest) => [contest.requestId, contest]));
  return {
    total,
    head: {
      subject: {
        // The same that a receipt of erasure names.
        reference: referenceOf(tenant, reach),
        tenant: kid,
        visitorId: reach.visitorId,
        device: device && describeDevice(device),
        linkedRequests: links.map(({ requestId, linkedAt }) => ({ requestId, linkedAt: isoTime(linkedAt) })),
      },
      generatedAt: isoTime(deps.clock()),
      override: override && { neverAutomation: true as const, createdAt: isoTime(override.createdAt) },
      contests: contests.map(heldContest),
      consent,
      notice: await noticeOf(database, tenant),
    },
    async *decisions(): AsyncGenerator<readonly DsarDecision[]> {
      for await (const page of heldDecisions(database, kid, where))
        yield page.map((one) => describeDecision(one, tenant, byRequest.get(one.requestId)));
    },
  };
}

/** For the person, with its audit row. @throws {Refusal} `no-data` */
export async function exported(deps: DsarDeps, reach: Reach, actor: Actor): Promise<Dsar> {
  const dsar = await gather(deps, reach);
  if (!dsar) throw new Refusal('no-data');
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

/** One JSON object, written while it is read. */
export async function* dsarJson(dsar: Dsar): AsyncGenerator<string> {
  const { subject, generatedAt, ...rest } = dsar.head;
  yield `{"subject":${JSON.stringify(subject)},"generatedAt":${JSON.stringify(generatedAt)},"decisions":[`;
  let first = true;
  for await (const page of dsar.decisions()) {
    for (const decision of page) {
      yield `${first ? '' : ','}${JSON.stringify(decision)}`;
      first = false;
    }
  }
  yield `],${JSON.stringify(rest).slice(1)}`;
}
