import { randomBytes } from 'node:crypto';
import type { AuditAction } from '../../audit/audit.ts';
import { rightsRef } from '../../audit/reference.ts';
import { writeAudit } from '../../audit/store.ts';
import { notifications } from '../../consent/service.ts';
import type { ConsentTenant } from '../../consent/tenant.ts';
import type { Database } from '../../db/db.ts';
import { decisionKey } from '../../ingest/decision-store.ts';
import type { Actor } from '../../lib/act.ts';
import { type Clock, iso, isoTime } from '../../lib/clock.ts';
import { Refusal, TenantGone } from '../../lib/errors.ts';
import { makeUlid } from '../../lib/ulid.ts';
import { lockHead } from '../../log/append-store.ts';
import type { ContestResponse } from '../../schema/rights.ts';
import type { WebhookEvent } from '../../schema/webhooks.ts';
import { enqueue } from '../../webhooks/store.ts';
import { type Reach, reaches } from '../subject.ts';
import { countReview } from '../tally-store.ts';
import {
  askSubject,
  type Claim,
  type Contest,
  claimContest,
  fileContest,
  type Outcome,
  type ResolverRole,
  releaseContest,
  resolveContest,
} from './contest.ts';
import { contestWordsOf } from './contest-text-of.ts';
import { contestOf, insertContest, insertOverride, lockContest, updateContest } from './store.ts';

/** Contests in the database: each change locks the record, and takes its audit row and its webhooks with it. */

export interface ContestDeps {
  readonly database: Database;
  readonly tenantOf: (kid: string) => ConsentTenant | undefined;
  readonly clock: Clock;
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

/** The record as the subject and a reviewer are told it. */
export function contestResponse(contest: Contest): ContestResponse {
  const { contestId, requestId, status, outcome, statement, version, question, reason, resolvedBy } = contest;
  const proposal = status === 'open' ? contest.proposal : null;
  return {
    contestId,
    requestId,
    status,
    outcome,
    statement,
    filedAt: isoTime(contest.filedAt),
    dueAt: isoTime(contest.dueAt),
    version,
    restricted: status === 'open',
    question,
    reason,
    resolvedAt: iso(contest.resolvedAt),
    resolvedBy,
    proposed: proposal && { outcome: proposal.outcome, by: proposal.by, at: isoTime(proposal.at) },
  };
}

type Tx = Parameters<Parameters<Database['transaction']>[0]>[0];

export function makeContestService(deps: ContestDeps) {
  const { database, tenantOf, clock } = deps;
  const words = contestWordsOf(tenantOf);

  function tenantFor(kid: string): ConsentTenant {
    const tenant = tenantOf(kid);
    if (!tenant) throw new TenantGone();
    return tenant;
  }

  async function note(
    tx: Tx,
    contest: Contest,
    actor: Actor,
    action: AuditAction,
    now: number,
  ): Promise<void> {
    const { kid, contestId, status, proposal } = contest;
    const outcome = contest.outcome ?? (action === 'contest.proposed' ? (proposal?.outcome ?? null) : null);
    const object = rightsRef(tenantFor(kid).rightsKey, 'contest', contestId);
    const detail = { status, outcome, class: contest.class };
    await writeAudit(tx, { kid, at: now, actor, action, object, detail });
  }

  async function tell(tx: Tx, contest: Contest, event: WebhookEvent, now: number): Promise<void> {
    const { kid, requestId } = contest;
    const tenant = tenantFor(kid);
    const principal = rightsRef(tenant.rightsKey, 'request', requestId);
    const told = notifications(tenant, event, contestResponse(contest));
    await enqueue(
      tx,
      told.map((notification) => ({ ...notification, kid, principal, requestId: null, at: now })),
    );
  }

  /** Locks, changes, writes. What changes nothing is answered as it is. */
  async function change(
    reviewer: Reviewer,
    contestId: string,
    step: (contest: Contest, now: number) => Contest,
    after: (tx: Tx, next: Contest, now: number) => Promise<void>,
  ): Promise<Contest> {
    const now = clock();
    return database.transaction(async (tx) => {
      const contest = await lockContest(tx, words, contestId);
      if (!contest) throw new Refusal('no-such-contest');
      if (contest.kid !== reviewer.kid) throw new Refusal('cross-tenant-denied');
      const next = step(contest, now);
      if (next === contest) return contest;
      await updateContest(tx, words, next);
      await after(tx, next, now);
      return next;
    });
  }

  const actorOf = ({ role, ref }: Reviewer): Actor => ({ role, ref });

  return {
    /** @throws {Refusal} `no-such-decision`, `not-your-decision` */
    async file(
      reach: Reach,
      filing: { readonly requestId: string; readonly statement: string | null },
      filedBy: string,
    ): Promise<Contest> {
      const { kid } = reach;
      const now = clock();
      return database.transaction(async (tx) => {
        // An erasure takes this lock too: no contest of a decision that is just going.
        await lockHead(tx, kid);
        const decision = await decisionKey(tx, kid, filing.requestId);
        if (!decision) throw new Refusal('no-such-decision');
        if (!reaches(reach, decision)) throw new Refusal('not-your-decision');
        const contestId = `con_${makeUlid(() => now, randomBytes)}`;
        const contest = fileContest({ ...filing, ...decision, kid, contestId, filedBy }, now);
        if (!(await insertContest(tx, words, contest))) {
          const first = await contestOf(tx, words, kid, filing.requestId);
          if (!first) throw new Error('a contest vanished while its decision was locked');
          return first;
        }
        await note(tx, contest, { role: 'subject', ref: filedBy }, 'contest.filed', now);
        await tell(tx, contest, 'contest.filed', now);
        return contest;
      });
    },

    claim: (reviewer: Reviewer, contestId: string, label: string): Promise<Contest> => {
      const holder: Omit<Claim, 'until'> = { by: reviewer.ref, label };
      return change(
        reviewer,
        contestId,
        (contest, now) => claimContest(contest, holder, now),
        (tx, next, now) => note(tx, next, actorOf(reviewer), 'contest.claimed', now),
      );
    },

    release: (reviewer: Reviewer, contestId: string): Promise<Contest> =>
      change(
        reviewer,
        contestId,
        (contest, now) => releaseContest(contest, reviewer.ref, now),
        (tx, next, now) => note(tx, next, actorOf(reviewer), 'contest.released', now),
      ),

    ask: (reviewer: Reviewer, contestId: string, question: string): Promise<Contest> =>
      change(
        reviewer,
        contestId,
        (contest, now) => askSubject(contest, reviewer.ref, question, now),
        (tx, next, now) => note(tx, next, actorOf(reviewer), 'contest.asked', now),
      ),

    /** An overturned outcome writes the override in the same transaction: later verdicts honour it. */
    resolve: (
      reviewer: Reviewer,
      ruling: {
        readonly contestId: string;
        readonly outcome: Outcome;
        readonly reason: string;
        readonly version: number | null;
      },
    ): Promise<Contest> => {
      const { outcome, reason, version } = ruling;
      const fourEyes = tenantOf(reviewer.kid)?.settings['review.fourEyes'] === true;
      const { role, ref: by, label = null } = reviewer;
      return change(
        reviewer,
        ruling.contestId,
        (contest, now) =>
          resolveContest(contest, { outcome, reason, role, by, label, version, fourEyes }, now),
        async (tx, next, now) => {
          const resolved = next.status === 'resolved';
          const { kid, durable, requestId } = next;
          if (resolved && outcome === 'overturned' && durable !== null) {
            await insertOverride(tx, { kid, durable, requestId, at: now });
          }
          await note(tx, next, actorOf(reviewer), resolved ? 'contest.resolved' : 'contest.proposed', now);
          if (resolved) {
            await countReview(tx, kid, requestId, outcome);
            await tell(tx, next, 'contest.resolved', now);
          }
        },
      );
    },
  };
}
