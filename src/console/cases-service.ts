import { rightsRef } from '../audit/reference.ts';
import { listAudit } from '../audit/store.ts';
import type { Database } from '../db/db.ts';
import { findDecision } from '../ingest/decision-store.ts';
import type { Contest } from '../rights/contests/contest.ts';
import { PERIODS } from '../rights/contests/due.ts';
import { COUNT_CAP } from '../rights/contests/queue-store.ts';
import { findContest } from '../rights/contests/store.ts';
import { describeDecision } from '../rights/dsar/service.ts';
import { heldOverride } from '../rights/dsar/store.ts';
import { countTrail, deviceContests, deviceTrail } from '../rights/dsar/trail-store.ts';
import type { Extension, Ruling } from '../schema/rights.ts';
import type { Context } from './context.ts';
import { readDrafts } from './drafts-service.ts';
import { deleteDrafts } from './session-store.ts';
import type { Staff } from './staff.ts';

/** A case as the console shows it, and the rulings on it over the contest service. */

const TRAIL_ROWS = 20;
const AUDIT_ROWS = 50;

/** The latest decisions of the device, this one among them, and what else there is of it. */
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
export async function readCase(context: Context, staff: Staff, contestId: string) {
  const { database, contestTexts } = context;
  const { kid } = staff;
  const contest = await findContest(database.read, contestTexts, contestId);
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
    /** Null: the decision was erased. */
    decision:
      stored && describeDecision({ requestId, verdict: stored.verdict, summary: null }, ingest, contest),
    incomplete: stored?.verdict.incomplete ?? false,
    monitor: stored?.verdict.monitor ?? false,
    ...device,
    /** Of `trailTotal`, which is one more at most. */
    cap: COUNT_CAP,
    audit,
    /** Whether gpd writes to the person. */
    mails: context.config.smtp_url !== null,
    fourEyes: tenant.settings['review.fourEyes'],
    extendDays: contest.extendedFrom === null ? PERIODS[tenant.settings['rights.profile']].extendDays : 0,
    profile: tenant.settings['rights.profile'],
    webhooks: tenant.webhooksFor('contest.resolved').length,
    drafts,
  };
}

export type CaseView = NonNullable<Awaited<ReturnType<typeof readCase>>>;

export async function askSubject(
  { rights, database }: Context,
  staff: Staff,
  contestId: string,
  question: string,
): Promise<void> {
  await rights.contests.ask(staff, contestId, question);
  await deleteDrafts(database, { kid: staff.kid, actor: staff.ref, contestId }, ['ask']);
}

export async function extendCase(
  { rights, database }: Context,
  staff: Staff,
  contestId: string,
  extension: Extension,
): Promise<void> {
  await rights.contests.extend(staff, contestId, extension);
  await deleteDrafts(database, { kid: staff.kid, actor: staff.ref, contestId }, ['extend']);
}

/** @returns the case after the change */
export async function resolveCase(
  { rights, database }: Context,
  staff: Staff,
  ruling: Ruling,
): Promise<Contest> {
  const contest = await rights.contests.resolve(staff, ruling);
  const { kid, ref: actor } = staff;
  await deleteDrafts(database, { kid, actor, contestId: ruling.contestId }, ['resolve', 'ask', 'extend']);
  return contest;
}
