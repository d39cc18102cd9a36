import type { AuditRow } from '../audit/audit.ts';
import { rightsRef } from '../audit/reference.ts';
import { listAudit } from '../audit/store.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import type { Database } from '../db/db.ts';
import { findDecision } from '../ingest/decision-store.ts';
import type { IngestTenant } from '../ingest/ports.ts';
import type { Contest } from '../rights/contests/contest.ts';
import { COUNT_CAP } from '../rights/contests/queue-store.ts';
import { findContest } from '../rights/contests/store.ts';
import type { DsarDecision } from '../rights/dsar/dsar.ts';
import { describeDecision } from '../rights/dsar/service.ts';
import { heldOverride } from '../rights/dsar/store.ts';
import { countTrail, deviceContests, deviceTrail, type TrailEntry } from '../rights/dsar/trail-store.ts';
import type { RightsApi } from '../rights/service.ts';
import type { Ruling } from '../schema/rights.ts';
import { type DraftContext, readDrafts } from './drafts-service.ts';
import { type Draft, deleteDrafts } from './session-store.ts';
import type { Staff } from './staff.ts';

/** A case as the console shows it, and the rulings on it over the contest service. */

export interface CaseContext extends DraftContext {
  readonly contests: RightsApi['contests'];
  readonly tenantOf: (kid: string) => ConsentTenant | undefined;
  readonly ingestTenantOf: (kid: string) => IngestTenant | undefined;
}

export interface CaseView {
  readonly contest: Contest;
  /** Null: the decision was erased. */
  readonly decision: DsarDecision | null;
  readonly incomplete: boolean;
  readonly monitor: boolean;
  /** The latest decisions of the same device, this one among them. */
  readonly trail: readonly TrailEntry[];
  /** At most `cap + 1`. */
  readonly trailTotal: number;
  readonly cap: number;
  readonly earlier: readonly Contest[];
  readonly audit: readonly AuditRow[];
  readonly fourEyes: boolean;
  readonly hasOverride: boolean;
  readonly webhooks: number;
  readonly drafts: readonly Draft[];
}

const TRAIL_ROWS = 20;
const AUDIT_ROWS = 50;

async function deviceOf(database: Database, { kid, contestId, durable }: Contest) {
  if (durable === null) return { trail: [], trailTotal: 0, earlier: [], hasOverride: false };
  const [trail, trailTotal, contests, override] = await Promise.all([
    deviceTrail(database, kid, durable, TRAIL_ROWS),
    countTrail(database, kid, durable, COUNT_CAP),
    deviceContests(database, kid, durable, TRAIL_ROWS),
    heldOverride(database, kid, { durable, linked: [] }),
  ]);
  const earlier = contests.filter((other) => other.contestId !== contestId);
  return { trail, trailTotal, earlier, hasOverride: override !== null };
}

/** Null: not found in this tenant. */
export async function readCase(
  context: CaseContext,
  staff: Staff,
  contestId: string,
): Promise<CaseView | null> {
  const { database, words } = context;
  const { kid } = staff;
  const contest = await findContest(database.read, words, contestId);
  const tenant = context.tenantOf(kid);
  const ingest = context.ingestTenantOf(kid);
  if (contest?.kid !== kid || !tenant || !ingest) return null;
  const { requestId } = contest;
  const object = rightsRef(tenant.rightsKey, 'contest', contestId);
  const [stored, device, audit, drafts] = await Promise.all([
    findDecision(database, kid, requestId),
    deviceOf(database, contest),
    listAudit(database, kid, { object }, AUDIT_ROWS),
    readDrafts(context, staff, contestId),
  ]);
  return {
    contest,
    decision:
      stored && describeDecision({ requestId, verdict: stored.verdict, summary: null }, ingest, contest),
    incomplete: stored?.verdict.incomplete ?? false,
    monitor: stored?.verdict.monitor ?? false,
    ...device,
    cap: COUNT_CAP,
    audit,
    fourEyes: tenant.settings['review.fourEyes'],
    webhooks: tenant.webhooksFor('contest.resolved').length,
    drafts,
  };
}

export async function askSubject(
  { contests, database }: CaseContext,
  staff: Staff,
  contestId: string,
  question: string,
): Promise<void> {
  await contests.ask(staff, contestId, question);
  await deleteDrafts(database, { kid: staff.kid, actor: staff.ref, contestId }, ['ask']);
}

/** @returns the case after the change */
export async function resolveCase(
  { contests, database }: CaseContext,
  staff: Staff,
  ruling: Ruling,
): Promise<Contest> {
  const contest = await contests.resolve(staff, ruling);
  const { kid, ref: actor } = staff;
  await deleteDrafts(database, { kid, actor, contestId: ruling.contestId }, ['resolve', 'ask']);
  return contest;
}
