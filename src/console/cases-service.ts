import { rightsRef } from '../audit/reference.ts';
import { listAudit } from '../audit/store.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import type { Database } from '../db/db.ts';
import { findDecision } from '../ingest/decision-store.ts';
import type { IngestTenant } from '../ingest/ports.ts';
import type { Clock } from '../lib/clock.ts';
import { isPlainText } from '../lib/plain-text.ts';
import { contestWordsOf } from '../rights/contests/contest-text-of.ts';
import { COUNT_CAP, queueCounts, queuePage, resolvedPage, workload } from '../rights/contests/queue-store.ts';
import type { makeContestService } from '../rights/contests/service.ts';
import { contestOf, findContest } from '../rights/contests/store.ts';
import { describeDecision } from '../rights/dsar/service.ts';
import { heldOverride } from '../rights/dsar/store.ts';
import { countTrail, deviceContests, deviceTrail } from '../rights/dsar/trail-store.ts';
import type { DraftPort, Staff } from './ports.ts';
import type { CasePort, CaseView, QueuePort } from './ports-cases.ts';

/** The queue and its cases, over the contest service: what the console shows and what it changes. */

export interface CaseDeps {
  readonly database: Database;
  readonly contests: ReturnType<typeof makeContestService>;
  readonly tenantOf: (kid: string) => ConsentTenant | undefined;
  readonly ingestTenantOf: (kid: string) => IngestTenant | undefined;
  readonly clock: Clock;
  readonly drafts: DraftPort;
}

const TRAIL_ROWS = 20;
const AUDIT_ROWS = 50;

export function makeQueuePort({ database, clock, tenantOf }: CaseDeps): QueuePort {
  const words = contestWordsOf(tenantOf);
  const who = (staff: Staff) => ({ me: staff.ref, now: clock() });
  return {
    cap: COUNT_CAP,
    open: (staff, filter, after, limit) =>
      queuePage(database, words, staff.kid, who(staff), filter, after, limit),
    resolved: (staff, filter, after, limit) => resolvedPage(database, words, staff.kid, filter, after, limit),
    counts: (staff) => queueCounts(database, staff.kid, who(staff)),
    workload: (staff) => workload(database, staff.kid, clock()),
    async find(staff, id) {
      if (!isPlainText(id)) return null;
      const byRequest = await contestOf(database.read, words, staff.kid, id);
      if (byRequest) return byRequest.contestId;
      const byId = await findContest(database.read, words, id);
      return byId?.kid === staff.kid ? byId.contestId : null;
    },
  };
}

export function makeCasePort(deps: CaseDeps): CasePort {
  const { database, contests, tenantOf, ingestTenantOf, drafts } = deps;
  const words = contestWordsOf(tenantOf);
  const reviewer = (staff: Staff) => ({
    kid: staff.kid,
    role: staff.role,
    ref: staff.ref,
    label: staff.label,
  });

  async function deviceOf(kid: string, durable: string | null) {
    if (durable === null) return { trail: [], trailTotal: 0, others: [] };
    const [trail, trailTotal, others] = await Promise.all([
      deviceTrail(database, kid, durable, TRAIL_ROWS),
      countTrail(database, kid, durable, COUNT_CAP),
      deviceContests(database, kid, durable, TRAIL_ROWS),
    ]);
    return { trail, trailTotal, others };
  }

  return {
    async read(staff, contestId): Promise<CaseView | null> {
      const { kid } = staff;
      const contest = await findContest(database.read, words, contestId);
      const tenant = tenantOf(kid);
      const ingest = ingestTenantOf(kid);
      if (contest?.kid !== kid || !tenant || !ingest) return null;
      const { durable, requestId } = contest;
      const object = rightsRef(tenant.rightsKey, 'contest', contestId);
      const [stored, device, audit, override, kept] = await Promise.all([
        findDecision(database, kid, requestId),
        deviceOf(kid, durable),
        listAudit(database, kid, { object }, AUDIT_ROWS),
        durable === null ? null : heldOverride(database, kid, { durable, linked: [] }),
        drafts.of(staff, contestId),
      ]);
      const { trail, trailTotal, others } = device;
      return {
        contest,
        decision:
          stored && describeDecision({ requestId, verdict: stored.verdict, summary: null }, ingest, contest),
        incomplete: stored?.verdict.incomplete ?? false,
        monitor: stored?.verdict.monitor ?? false,
        trail,
        trailTotal,
        cap: COUNT_CAP,
        earlier: others.filter((other) => other.contestId !== contestId),
        audit,
        fourEyes: tenant.settings['review.fourEyes'],
        hasOverride: override !== null,
        webhooks: tenant.webhooksFor('contest.resolved').length,
        drafts: kept,
      };
    },
    async claim(staff, contestId) {
      await contests.claim(reviewer(staff), contestId, staff.label);
    },
    async release(staff, contestId) {
      await contests.release(reviewer(staff), contestId);
    },
    async ask(staff, contestId, question) {
      await contests.ask(reviewer(staff), contestId, question);
      await drafts.drop(staff, contestId, ['ask']);
    },
    async resolve(staff, ruling) {
      const contest = await contests.resolve(reviewer(staff), ruling);
      await drafts.drop(staff, ruling.contestId, ['resolve', 'ask']);
      return contest;
    },
  };
}
