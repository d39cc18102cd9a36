import { type AuditAction, type AuditEvent, rightsRef, writeAudit } from '../../audit/audit-store.ts';
import { clearDoubt } from '../../consent/doubts-store.ts';
import type { Database } from '../../db/engine.ts';
import { decisionKey } from '../../ingest/decisions-store.ts';
import type { Actor } from '../../lib/act.ts';
import { DAY, SECOND } from '../../lib/clock.ts';
import { createUlid } from '../../lib/crypto.ts';
import { Refusal, TenantGone } from '../../lib/errors.ts';
import { inTurn, withHead } from '../../log/head-queue-store.ts';
import { notify } from '../../notify/notify-service.ts';
import type { OutboxEvent } from '../../notify/outbox-store.ts';
import type { Extension, Ruling } from '../../schema/rights.ts';
import { WEBHOOK_EVENTS } from '../../schema/webhooks.ts';
import type { Tenant } from '../../tenants/tenant.ts';
import { countRuling } from '../outcomes-store.ts';
import { type Reach, type RightsParts, reaches } from '../subject.ts';
import { acknowledgeComplaint, answerComplaint } from './complaint.ts';
import {
  answerQuestion,
  askSubject,
  type CaseKind,
  type CaseParts,
  type Contest,
  claimContest,
  extendContest,
  fileContest,
  type ResolverRole,
  releaseContest,
  resolveContest,
} from './contest.ts';
import { caseRecord } from './record.ts';
import {
  countCases,
  findContest,
  insertContest,
  insertOverride,
  lockContest,
  updateContest,
} from './store.ts';

/** Contests in the database. */

/**
 * All that can be done with a contest. Each act locks the record, and takes its audit row and its notices
 * with it. A refusal of all acts of staff: `no-such-contest`, `cross-tenant-denied`. A removed tenant is
 * {@link TenantGone}.
 */
export interface ContestService {
  /**
   * Files a case about a decision that the subject reaches; a second one of its kind is the first.
   * @throws {Refusal} `no-such-decision`, `not-your-decision`, `too-many-cases`
   */
  file(reach: Reach, filing: Filing, filedBy: string): Promise<Contest>;
  /**
   * Takes the case for an hour, or renews that.
   * @throws {Refusal} `self-review-denied`, `already-resolved`, `claimed-by-another`
   */
  claim(reviewer: Reviewer, contestId: string, label: string): Promise<Contest>;
  /**
   * Gives the case back.
   * @throws {Refusal} `already-resolved`, `claimed-by-another`
   */
  release(reviewer: Reviewer, contestId: string): Promise<Contest>;
  /**
   * Asks the person a question; the due date stays, or its clock stands still (rights.profile uk).
   * @throws {Refusal} `self-review-denied`, `already-resolved`, `claimed-by-another`
   */
  ask(reviewer: Reviewer, contestId: string, question: string): Promise<Contest>;
  /**
   * The person who filed it answers the question.
   * @throws {Refusal} `refusalIfMissing`, `not-your-decision`, `case-closed`
   */
  answer(replier: Replier, contestId: string, answer: string): Promise<Contest>;
  /**
   * Moves the due date, once, by as many days as the law of the tenant allows.
   * @throws {Refusal} `self-review-denied`, `already-resolved`, `claimed-by-another`, `stale-version`,
   * `invalid-request`
   */
  extend(reviewer: Reviewer, contestId: string, extension: Extension): Promise<Contest>;
  /**
   * Rules; with four eyes the first ruling is a proposal. An overturned outcome writes the override in the
   * same transaction: later verdicts honour it. `onOverturned`, which may change the tenant, joins that
   * transaction, but not that of a proposal.
   * @throws {Refusal} `self-review-denied`, `already-resolved`, `claimed-by-another`, `stale-version`
   */
  resolve(
    reviewer: Reviewer,
    ruling: Ruling,
    onOverturned?: (changed: Changed) => Promise<void>,
  ): Promise<Contest>;
  /**
   * Tells the person that their complaint has arrived.
   * @throws {Refusal} `self-review-denied`, `already-resolved`, `claimed-by-another`
   */
  acknowledge(reviewer: Reviewer, contestId: string): Promise<Contest>;
  /**
   * Ends a complaint with its outcome, in words for the person.
   * @throws {Refusal} `self-review-denied`, `already-resolved`, `claimed-by-another`
   */
  answerComplaint(reviewer: Reviewer, contestId: string, outcome: string): Promise<Contest>;
}

/** Staff at work on a tenant's contests. */
export interface Reviewer extends Actor {
  readonly kid: string;
  readonly role: ResolverRole;
  /** Their name in the console. */
  readonly label?: string;
}

/** The person who answers a reviewer's question. */
export interface Replier {
  readonly kid: string;
  /** The keyed reference that filed the contest. */
  readonly ref: string;
  readonly refusalIfMissing: NonNullable<Step['refusalIfMissing']>;
}

function extend(deps: RightsParts, reviewer: Reviewer, contestId: string, extension: Extension) {
  const profile = profileOf(deps, reviewer.kid);
  return changeContest(deps, reviewer.kid, contestId, {
    change: (contest, now) => extendContest(contest, reviewer.ref, extension, { now, profile }),
    after: recordAs(deps, reviewer, 'contest.extended', { days: extension.days }),
  });
}

type Filing = Pick<Contest, 'requestId' | 'statement'> & CaseParts;

const MAX_CASES = 3;

/**
 * Allows three open cases per day and client network (contract-2 section 15).
 * @throws {Refusal} `too-many-cases`
 */
async function refuseTooManyCases(tx: Tx, kid: string, caseNetwork: string, now: number): Promise<void> {
  const today = Math.floor(now / DAY) * DAY;
  if ((await countCases(tx, kid, caseNetwork, today)) < MAX_CASES) return;
  const seconds = Math.ceil((today + DAY - now) / SECOND);
  throw new Refusal('too-many-cases', { headers: { 'retry-after': String(seconds) } });
}

async function file(deps: RightsParts, reach: Reach, filing: Filing, filedBy: string): Promise<Contest> {
  const { contestTexts } = deps;
  const { kid } = reach;
  const now = deps.clock();
  // An erasure takes this lock too, so that nobody contests a decision while it is deleted.
  return withHead(deps.database, kid, async (tx) => {
    const { requestId, kind = 'contest' } = filing;
    const findOfKind = (one: CaseKind) => findContest(tx, contestTexts, { kid, requestId, kind: one });
    // A complaint can be about a decision that only its contest still knows.
    const decision =
      (await decisionKey(tx, kid, requestId)) ?? (kind === 'complaint' ? await findOfKind('contest') : null);
    if (!decision) throw new Refusal('no-such-decision');
    if (!reaches(reach, decision)) throw new Refusal('not-your-decision');
    const existing = await findOfKind(kind);
    if (existing) return existing;
    if (filing.caseNetwork) await refuseTooManyCases(tx, kid, filing.caseNetwork, now);
    const contestId = `con_${createUlid(() => now, deps.random)}`;
    const profile = profileOf(deps, kid);
    const { durable, class: contested } = decision;
    const filed = { ...filing, durable, class: contested, kid, contestId, filedBy };
    const contest = fileContest(filed, now, profile);
    if (!(await insertContest(tx, contestTexts, contest)))
      throw new Error('a second contest while its decision was locked');
    const actor = { role: 'subject', ref: filedBy } as const;
    const action = kind === 'complaint' ? 'complaint.received' : 'contest.filed';
    await recordAs(deps, actor, action)({ tx, contest, now });
    return contest;
  });
}

const resolve = (
  deps: RightsParts,
  ...[reviewer, ruling, onOverturned]: Parameters<ContestService['resolve']>
) => {
  const { contestId, outcome, reason, version } = ruling;
  const fourEyes = deps.tenantOf(reviewer.kid)?.settings['review.fourEyes'] === true;
  const { role, ref: by, label = null } = reviewer;
  return changeContest(deps, reviewer.kid, contestId, {
    locksHead: outcome === 'overturned',
    changesTenant: onOverturned !== undefined,
    change: (contest, now) =>
      resolveContest(contest, { outcome, reason, role, by, label, version, fourEyes }, now),
    async after(changed) {
      const { tx, contest, now } = changed;
      const { kid, durable, requestId } = contest;
      const isResolved = contest.status === 'resolved';
      if (isResolved && outcome === 'overturned') {
        if (durable !== null) await insertOverride(tx, { kid, durable, requestId, at: now });
        await clearDoubt(tx, tenantFor(deps, kid), requestId, now);
        await onOverturned?.(changed);
      }
      await recordAs(deps, reviewer, isResolved ? 'contest.resolved' : 'contest.proposed')(changed);
      if (isResolved) await countRuling(tx, kid, requestId, outcome);
    },
  });
};

export const createContestService = (deps: RightsParts): ContestService => ({
  file: (reach, filing, filedBy) => file(deps, reach, filing, filedBy),
  claim: (reviewer, contestId, label) =>
    changeContest(deps, reviewer.kid, contestId, {
      change: (contest, now) => claimContest(contest, { by: reviewer.ref, label }, now),
      after: recordAs(deps, reviewer, 'contest.claimed'),
    }),
  release: (reviewer, contestId) =>
    changeContest(deps, reviewer.kid, contestId, {
      change: (contest, now) => releaseContest(contest, reviewer.ref, now),
      after: recordAs(deps, reviewer, 'contest.released'),
    }),
  ask: (reviewer, contestId, question) =>
    changeContest(deps, reviewer.kid, contestId, {
      change: (contest, now) =>
        askSubject(contest, reviewer.ref, question, { now, profile: profileOf(deps, reviewer.kid) }),
      after: recordAs(deps, reviewer, 'contest.asked'),
    }),
  answer: ({ kid, ref, refusalIfMissing }, contestId, answer) =>
    changeContest(deps, kid, contestId, {
      refusalIfMissing,
      change(contest, now) {
        if (contest.filedBy !== ref) throw new Refusal('not-your-decision');
        return answerQuestion(contest, answer, now);
      },
      after: recordAs(deps, { role: 'subject', ref }, 'contest.answered'),
    }),
  extend: (reviewer, contestId, extension) => extend(deps, reviewer, contestId, extension),
  resolve: (...ruling) => resolve(deps, ...ruling),
  acknowledge: (reviewer, contestId) =>
    changeContest(deps, reviewer.kid, contestId, {
      change: (contest, now) => acknowledgeComplaint(contest, reviewer.ref, now),
      after: recordAs(deps, reviewer, 'complaint.acknowledged'),
    }),
  answerComplaint: (reviewer, contestId, text) =>
    changeContest(deps, reviewer.kid, contestId, {
      change: (contest, now) => {
        const { role, ref: by, label } = reviewer;
        return answerComplaint(contest, { text, role, by, label }, now);
      },
      after: recordAs(deps, reviewer, 'complaint.answered'),
    }),
});

export type Tx = Parameters<Parameters<Database['transaction']>[0]>[0];

/** @throws {TenantGone} */
export function tenantFor({ tenantOf }: Pick<RightsParts, 'tenantOf'>, kid: string): Tenant {
  const tenant = tenantOf(kid);
  if (!tenant) throw new TenantGone();
  return tenant;
}

const profileOf = (deps: RightsParts, kid: string) => tenantFor(deps, kid).settings['rights.profile'];

/** A change within its transaction. */
export interface Changed {
  readonly tx: Tx;
  readonly contest: Contest;
  readonly now: number;
}

const CASE_EVENTS: readonly OutboxEvent[] = [...WEBHOOK_EVENTS, 'complaint.acknowledged'];
/** The dates of a complaint bind the site: the person gets the acknowledgement and the outcome. */
const DUE_EVENTS: readonly OutboxEvent[] = ['contest.due-soon', 'contest.overdue'];

/** An audit row, and a notice where an event has the name of the action. */
const recordAs =
  (deps: RightsParts, actor: Actor, action: AuditAction, extraDetail: AuditEvent['detail'] = {}) =>
  async (changed: Changed): Promise<void> => {
    const { tx, contest, now } = changed;
    const { kid, contestId, status, proposal } = contest;
    const outcome = contest.outcome ?? (action === 'contest.proposed' ? (proposal?.outcome ?? null) : null);
    const object = rightsRef(tenantFor(deps, kid).rightsKey, 'contest', contestId);
    const detail = { status, outcome, class: contest.class, ...extraDetail };
    await writeAudit(tx, { kid, at: now, actor, action, object, detail });
    const event = CASE_EVENTS.find((name) => name === action);
    if (event) await notifyOf(deps, changed, event);
  };

export function notifyOf(
  deps: RightsParts,
  { tx, contest, now }: Changed,
  event: OutboxEvent,
): Promise<void> {
  const tenant = tenantFor(deps, contest.kid);
  const principal = rightsRef(tenant.rightsKey, 'request', contest.requestId);
  const { contestId: number, email, kind } = contest;
  const hasEmail = email !== null && !(kind === 'complaint' && DUE_EVENTS.includes(event));
  return notify(tx, tenant, { event, data: caseRecord(contest), number, hasEmail, principal, at: now });
}

export interface Step {
  /** The refusal for a contest of another tenant; undefined: the refusals for staff. */
  readonly refusalIfMissing?: 'no-such-contest' | 'no-such-case';
  readonly change: (contest: Contest, now: number) => Contest;
  /** True if the change writes to the log, whose head must be locked before any contest, as erasures do. */
  readonly locksHead?: boolean;
  /** True if `after` may change the tenant. */
  readonly changesTenant?: boolean;
  readonly after: (changed: Changed) => Promise<void>;
}

/** Locks the contest, changes it and writes it. A change without effect writes nothing. */
async function changeContest(
  { database, contestTexts, clock }: RightsParts,
  kid: string,
  contestId: string,
  step: Step,
): Promise<Contest> {
  const now = clock();
  const work = async (tx: Tx): Promise<Contest> => {
    const contest = await lockContest(tx, contestTexts, contestId);
    if (!contest) throw new Refusal(step.refusalIfMissing ?? 'no-such-contest');
    if (contest.kid !== kid) throw new Refusal(step.refusalIfMissing ?? 'cross-tenant-denied');
    const changedContest = step.change(contest, now);
    if (changedContest === contest) return contest;
    await updateContest(tx, contestTexts, changedContest);
    await step.after({ tx, contest: changedContest, now });
    return changedContest;
  };
  // An erasure locks the contests of its subject too.
  return step.locksHead
    ? withHead(database, kid, work, { mayRefuse: false, changesTenant: step.changesTenant === true })
    : inTurn(database, kid, () => database.transaction(work), { mayRefuse: false });
}
