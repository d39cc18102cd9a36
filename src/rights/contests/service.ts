import type { AuditAction } from '../../audit/audit.ts';
import { rightsRef } from '../../audit/reference.ts';
import { writeAudit } from '../../audit/store.ts';
import { notifications } from '../../consent/service.ts';
import type { ConsentTenant } from '../../consent/tenant.ts';
import type { Database } from '../../db/db.ts';
import { decisionKey } from '../../ingest/decision-store.ts';
import type { Actor } from '../../lib/act.ts';
import { type Clock, DAY, SECOND } from '../../lib/clock.ts';
import { Refusal, TenantGone } from '../../lib/errors.ts';
import type { Random } from '../../lib/random.ts';
import { makeUlid } from '../../lib/random.ts';
import { lockHead } from '../../log/append-store.ts';
import type { Ruling } from '../../schema/rights.ts';
import type { WebhookEvent } from '../../schema/webhooks.ts';
import { enqueue } from '../../webhooks/store.ts';
import { type Reach, reaches } from '../subject.ts';
import { countReview } from '../tally-store.ts';
import { countCases } from './case-store.ts';
import {
  answerQuestion,
  askSubject,
  type CaseParts,
  type Contest,
  claimContest,
  fileContest,
  type ResolverRole,
  releaseContest,
  resolveContest,
} from './contest.ts';
import type { ContestWords } from './contest-text.ts';
import { contestResponse } from './record.ts';
import { contestOf, insertContest, insertOverride, lockContest, updateContest } from './store.ts';

/** Contests in the database: each change locks the record, and takes its audit row and its webhooks with it. */

export interface ContestDeps {
  readonly database: Database;
  readonly tenantOf: (kid: string) => ConsentTenant | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly words: ContestWords;
}

/** Staff at work on a tenant's contests. */
export interface Reviewer {
  readonly kid: string;
  readonly role: ResolverRole;
  /** Keyed reference. */
  readonly ref: string;
  /** How colleagues in the console know them. */
  readonly label?: string;
}

/** Who answers a reviewer's question. */
export interface Replier {
  readonly kid: string;
  /** Keyed reference, the one that filed the contest. */
  readonly ref: string;
  readonly missing: 'no-such-contest' | 'no-such-case';
}

type Tx = Parameters<Parameters<Database['transaction']>[0]>[0];

function tenantFor({ tenantOf }: ContestDeps, kid: string): ConsentTenant {
  const tenant = tenantOf(kid);
  if (!tenant) throw new TenantGone();
  return tenant;
}

/** A change within its transaction. */
interface Changed {
  readonly tx: Tx;
  readonly contest: Contest;
  readonly now: number;
}

async function note(
  deps: ContestDeps,
  { tx, contest, now }: Changed,
  actor: Actor,
  action: AuditAction,
): Promise<void> {
  const { kid, contestId, status, proposal } = contest;
  const outcome = contest.outcome ?? (action === 'contest.proposed' ? (proposal?.outcome ?? null) : null);
  const object = rightsRef(tenantFor(deps, kid).rightsKey, 'contest', contestId);
  const detail = { status, outcome, class: contest.class };
  await writeAudit(tx, { kid, at: now, actor, action, object, detail });
}

async function tell(deps: ContestDeps, { tx, contest, now }: Changed, event: WebhookEvent): Promise<void> {
  const { kid, requestId } = contest;
  const tenant = tenantFor(deps, kid);
  const principal = rightsRef(tenant.rightsKey, 'request', requestId);
  const told = notifications(tenant, event, contestResponse(contest));
  await enqueue(
    tx,
    told.map((notification) => ({ ...notification, kid, principal, requestId: null, at: now })),
  );
}

interface Step {
  /** How one that is not of the tenant is refused; undefined: as staff are told. */
  readonly missing?: Replier['missing'];
  readonly change: (contest: Contest, now: number) => Contest;
  readonly after: (changed: Changed) => Promise<void>;
}

/** Locks, changes, writes. What changes nothing is answered as it is. */
async function change(
  { database, words, clock }: ContestDeps,
  kid: string,
  contestId: string,
  step: Step,
): Promise<Contest> {
  const now = clock();
  return database.transaction(async (tx) => {
    const contest = await lockContest(tx, words, contestId);
    if (!contest) throw new Refusal(step.missing ?? 'no-such-contest');
    if (contest.kid !== kid) throw new Refusal(step.missing ?? 'cross-tenant-denied');
    const next = step.change(contest, now);
    if (next === contest) return contest;
    await updateContest(tx, words, next);
    await step.after({ tx, contest: next, now });
    return next;
  });
}

const actorOf = ({ role, ref }: Reviewer): Actor => ({ role, ref });

type Filing = Pick<Contest, 'requestId' | 'statement'> & CaseParts;

const MAX_CASES = 3;

/** Three open cases a day and client network (contract-2 section 15). @throws {Refusal} `too-many-cases` */
async function refuseTooMany(tx: Tx, kid: string, caseNetwork: string, now: number): Promise<void> {
  const today = Math.floor(now / DAY) * DAY;
  if ((await countCases(tx, kid, caseNetwork, today)) < MAX_CASES) return;
  const seconds = Math.ceil((today + DAY - now) / SECOND);
  throw new Refusal('too-many-cases', { headers: { 'retry-after': String(seconds) } });
}

async function file(deps: ContestDeps, reach: Reach, filing: Filing, filedBy: string): Promise<Contest> {
  const { words } = deps;
  const { kid } = reach;
  const now = deps.clock();
  return deps.database.transaction(async (tx) => {
    // An erasure takes this lock too: no contest of a decision that is just going.
    await lockHead(tx, kid);
    const decision = await decisionKey(tx, kid, filing.requestId);
    if (!decision) throw new Refusal('no-such-decision');
    if (!reaches(reach, decision)) throw new Refusal('not-your-decision');
    const first = await contestOf(tx, words, kid, filing.requestId);
    if (first) return first;
    if (filing.caseNetwork) await refuseTooMany(tx, kid, filing.caseNetwork, now);
    const contestId = `con_${makeUlid(() => now, deps.random)}`;
    const contest = fileContest({ ...filing, ...decision, kid, contestId, filedBy }, now);
    if (!(await insertContest(tx, words, contest)))
      throw new Error('a second contest while its decision was locked');
    await note(deps, { tx, contest, now }, { role: 'subject', ref: filedBy }, 'contest.filed');
    await tell(deps, { tx, contest, now }, 'contest.filed');
    return contest;
  });
}

/** An overturned outcome writes the override in the same transaction: later verdicts honour it. */
function resolve(deps: ContestDeps, reviewer: Reviewer, ruling: Ruling): Promise<Contest> {
  const { contestId, outcome, reason, version } = ruling;
  const fourEyes = deps.tenantOf(reviewer.kid)?.settings['review.fourEyes'] === true;
  const { role, ref: by, label = null } = reviewer;
  return change(deps, reviewer.kid, contestId, {
    change: (contest, now) =>
      resolveContest(contest, { outcome, reason, role, by, label, version, fourEyes }, now),
    async after(changed) {
      const { tx, contest, now } = changed;
      const { kid, durable, requestId } = contest;
      const resolved = contest.status === 'resolved';
      if (resolved && outcome === 'overturned' && durable !== null)
        await insertOverride(tx, { kid, durable, requestId, at: now });
      await note(deps, changed, actorOf(reviewer), resolved ? 'contest.resolved' : 'contest.proposed');
      if (!resolved) return;
      await countReview(tx, kid, requestId, outcome);
      await tell(deps, changed, 'contest.resolved');
    },
  });
}

export function makeContestService(deps: ContestDeps) {
  /** A change that leaves an audit row alone. */
  const noted = (
    reviewer: Reviewer,
    contestId: string,
    action: AuditAction,
    step: Step['change'],
  ): Promise<Contest> => {
    const after = (changed: Changed): Promise<void> => note(deps, changed, actorOf(reviewer), action);
    return change(deps, reviewer.kid, contestId, { change: step, after });
  };
  return {
    /** @throws {Refusal} `no-such-decision`, `not-your-decision` */
    file: (reach: Reach, filing: Filing, filedBy: string): Promise<Contest> =>
      file(deps, reach, filing, filedBy),

    claim: (reviewer: Reviewer, contestId: string, label: string): Promise<Contest> =>
      noted(reviewer, contestId, 'contest.claimed', (contest, now) =>
        claimContest(contest, { by: reviewer.ref, label }, now),
      ),

    release: (reviewer: Reviewer, contestId: string): Promise<Contest> =>
      noted(reviewer, contestId, 'contest.released', (contest, now) =>
        releaseContest(contest, reviewer.ref, now),
      ),

    ask: (reviewer: Reviewer, contestId: string, question: string): Promise<Contest> =>
      noted(reviewer, contestId, 'contest.asked', (contest, now) =>
        askSubject(contest, reviewer.ref, question, now),
      ),

    resolve: (reviewer: Reviewer, ruling: Ruling): Promise<Contest> => resolve(deps, reviewer, ruling),

    /**
     * The person who filed it answers the question.
     * @throws {Refusal} `missing`, `not-your-decision`, `case-closed`
     */
    answer: ({ kid, ref, missing }: Replier, contestId: string, answer: string): Promise<Contest> =>
      change(deps, kid, contestId, {
        missing,
        change(contest, now) {
          if (contest.filedBy !== ref) throw new Refusal('not-your-decision');
          return answerQuestion(contest, answer, now);
        },
        after: (changed) => note(deps, changed, { role: 'subject', ref }, 'contest.answered'),
      }),
  };
}
