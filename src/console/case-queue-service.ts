import { listAudit, rightsRef } from '../audit/audit-store.ts';
import type { Database } from '../db/engine.ts';
import { findDecision } from '../ingest/decisions-store.ts';
import type { Verdict } from '../ingest/verdict/verdict.ts';
import { tryOr } from '../lib/errors.ts';
import { isPlainText } from '../lib/text.ts';
import { type Contest, NO_TEXTS } from '../rights/contests/contest.ts';
import { PERIODS } from '../rights/contests/period.ts';
import {
  COUNT_CAP,
  findNextCase,
  queueCounts,
  queuePage,
  readNeighbours,
  readWorkload,
} from '../rights/contests/queue-store.ts';
import type { QueueQuery } from '../rights/contests/record.ts';
import { findContest } from '../rights/contests/store.ts';
import { describeDecision } from '../rights/dsar/service.ts';
import { countTrail, readDeviceContests, readDeviceTrail, readOverride } from '../rights/dsar/store.ts';
import type { Extension, Ruling } from '../schema/rights.ts';
import { writeAgentRow } from './agent-view-service.ts';
import type { Context, Staff } from './context-service.ts';
import { type Draft, deleteDrafts, listDrafts, saveDraft } from './session-store.ts';

/** Reads the queue and its cases for the pages, acts on cases for reviewers and keeps their drafts. */

const TRAIL_ROWS = 20;
const AUDIT_ROWS = 50;

/** Reads the latest decisions about the device, its other contests and its override. */
async function readDevice(database: Database, { kid, contestId, durable }: Contest) {
  if (durable === null) return { trail: [], trailTotal: 0, earlier: [], hasOverride: false };
  const [trail, trailTotal, contests, override] = await Promise.all([
    readDeviceTrail(database, kid, durable, TRAIL_ROWS),
    countTrail(database, kid, durable, COUNT_CAP),
    readDeviceContests(database, kid, durable, TRAIL_ROWS),
    readOverride(database, kid, { durable, linked: [] }),
  ]);
  const earlier = contests.filter((other) => other.contestId !== contestId);
  return { trail, trailTotal, earlier, hasOverride: override !== null };
}

/** The verified agent that the policy refused at the door, and the path of the row that did; else null. */
const findRefusedAgent = ({ door, declaredAgentId: agent }: Verdict) =>
  door && agent !== null ? { agent, path: door.path } : null;

/** @returns null if the tenant has no such contest */
export async function readCase(context: Context, staff: Staff, contestId: string) {
  const { database, contestTexts } = context;
  const { kid } = staff;
  const contest = await findContest(database.read, contestTexts, { contestId });
  const tenant = context.tenantOf(kid);
  if (contest?.kid !== kid || !tenant) return null;
  const { requestId } = contest;
  const viewer = { kid, me: staff.ref, now: context.clock() };
  const object = rightsRef(tenant.rightsKey, 'contest', contestId);
  const [stored, device, audit, drafts, neighbours] = await Promise.all([
    findDecision(database, kid, requestId),
    readDevice(database, contest),
    listAudit(database, kid, { object }, AUDIT_ROWS),
    readDrafts(context, staff, contestId),
    contest.status === 'open' ? readNeighbours(database, viewer, contest) : null,
  ]);
  return {
    contest,
    /** Null if the decision was erased. */
    decision:
      stored && describeDecision({ requestId, verdict: stored.verdict, summary: null }, tenant, contest),
    incomplete: stored?.verdict.incomplete ?? false,
    monitor: stored?.verdict.monitor ?? false,
    refusedAgent: stored && findRefusedAgent(stored.verdict),
    ...device,
    /** The limit of counting: `trailTotal` is at most one more, and is then shown as "more than". */
    cap: COUNT_CAP,
    audit,
    /** True if gpd can send mail to the person. */
    mails: context.config.smtp_url !== null,
    fourEyes: tenant.settings['review.fourEyes'],
    extendDays: contest.extendedFrom === null ? PERIODS[tenant.settings['rights.profile']].extendDays : 0,
    profile: tenant.settings['rights.profile'],
    webhooks: tenant.webhooksFor('contest.resolved').length,
    drafts,
    neighbours,
  };
}

export const findNextCaseFor = ({ database, clock }: Context, { kid, ref: me }: Staff, contest: Contest) =>
  findNextCase(database, { kid, me, now: clock() }, contest);

export type CaseView = NonNullable<Awaited<ReturnType<typeof readCase>>>;

type Change = (contests: Context['rights']['contests']) => Promise<Contest>;

/** Applies the change and deletes the drafts of its texts. @returns the contest after the change */
async function applyChange(
  { rights, database }: Context,
  staff: Staff,
  kinds: Draft['kind'][],
  change: Change,
) {
  const contest = await change(rights.contests);
  const { kid, ref: actor } = staff;
  await deleteDrafts(database, { kid, actor, contestId: contest.contestId }, kinds);
  return contest;
}

export const askSubject = (context: Context, staff: Staff, contestId: string, question: string) =>
  applyChange(context, staff, ['ask'], (contests) => contests.ask(staff, contestId, question));

export const extendCase = (context: Context, staff: Staff, contestId: string, extension: Extension) =>
  applyChange(context, staff, ['extend'], (contests) => contests.extend(staff, contestId, extension));

/** @param allowed the refused agent that a ruling for it also lets through from now on; null: none */
export const resolveCase = (
  context: Context,
  staff: Staff,
  ruling: Ruling,
  allowed: CaseView['refusedAgent'],
) =>
  applyChange(context, staff, ['resolve', 'ask', 'extend'], (contests) =>
    contests.resolve(
      staff,
      ruling,
      allowed ? ({ tx, now }) => writeAgentRow(tx, staff, { ...allowed, action: 'allow' }, now) : undefined,
    ),
  );

export const acknowledgeCase = (context: Context, staff: Staff, contestId: string) =>
  applyChange(context, staff, [], (contests) => contests.acknowledge(staff, contestId));

export const answerCase = (context: Context, staff: Staff, contestId: string, outcome: string) =>
  applyChange(context, staff, ['resolve', 'ask'], (contests) =>
    contests.answerComplaint(staff, contestId, outcome),
  );

/**
 * Drafts are texts that staff typed and did not send. They are
 * encrypted like the texts of their contest, and kept for a day.
 */
type Author = Pick<Staff, 'kid' | 'ref'>;

/** Characters; four times the longest reason. */
const MAX_DRAFT_LENGTH = 16_000;

/** An empty text deletes the draft. @returns true if the draft was saved; false for an unknown contest */
async function saveOrDeleteDraft(context: Context, by: Author, contestId: string, draft: Draft) {
  const { database, contestTexts, clock } = context;
  const { kid, ref } = by;
  const { kind, outcome, text } = draft;
  if (text === '') {
    await deleteDrafts(database, { kid, actor: ref, contestId }, [kind]);
    return false;
  }
  const ciphertext = contestTexts.encrypt(kid, contestId, { ...NO_TEXTS, reason: text }) ?? '';
  return saveDraft(database, { kid, actor: ref, contestId, kind, outcome, text: ciphertext, at: clock() });
}

/** @returns false if one of the texts was too long or could not be saved */
export async function saveTyped(
  context: Context,
  by: Author,
  contestId: string,
  typed: readonly (Draft | null)[],
): Promise<boolean> {
  let isAllSaved = true;
  for (const draft of typed) {
    if (draft === null) continue;
    const isSaved =
      draft.text.length <= MAX_DRAFT_LENGTH && (await saveOrDeleteDraft(context, by, contestId, draft));
    if (!isSaved && draft.text !== '') isAllSaved = false;
  }
  return isAllSaved;
}

/**
 * Skips drafts that cannot be decrypted, for example because
 * the tenant's key changed: a draft lives for a day at most.
 */
async function readDrafts({ database, contestTexts }: Context, { kid, ref }: Author, contestId: string) {
  const drafts = await listDrafts(database, kid, ref, contestId);
  return drafts.flatMap((draft) => {
    const text = tryOr(() => contestTexts.decrypt(kid, contestId, draft.text).reason, null);
    return text === null ? [] : [{ ...draft, text }];
  });
}

export async function readQueue(context: Context, staff: Staff, query: QueueQuery) {
  const { database, contestTexts, clock } = context;
  const { kid, ref: me, role } = staff;
  const viewer = { kid, me, now: clock() };
  const [page, counts, load] = await Promise.all([
    queuePage(database, contestTexts, viewer, query),
    queueCounts(database, viewer),
    role === 'dpo' ? readWorkload(database, kid, viewer.now) : [],
  ]);
  // Only a dpo sees the workload of colleagues. Counts above the cap are shown as "more than".
  return { ...page, counts, load, cap: COUNT_CAP };
}

/** @param id of a contest or of a request @returns the id of the contest; null if the tenant has none */
export async function findCase({ database, contestTexts }: Context, { kid }: Staff, id: string) {
  if (!isPlainText(id)) return null;
  for (const kind of ['contest', 'complaint'] as const) {
    const byRequest = await findContest(database.read, contestTexts, { kid, requestId: id, kind });
    if (byRequest) return byRequest.contestId;
  }
  const byId = await findContest(database.read, contestTexts, { contestId: id });
  return byId?.kid === kid ? byId.contestId : null;
}
