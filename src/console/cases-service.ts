import { rightsRef } from '../audit/audit.ts';
import { listAudit } from '../audit/store.ts';
import type { Database } from '../db/engine.ts';
import { findDecision } from '../ingest/decisions-store.ts';
import { tryOr } from '../lib/errors.ts';
import { isPlainText } from '../lib/text.ts';
import { type Contest, NO_TEXTS, PERIODS } from '../rights/contests/contest.ts';
import type { QueueQuery, QueueRow } from '../rights/contests/record.ts';
import {
  COUNT_CAP,
  findContest,
  queueCounts,
  queuePage,
  readWorkload,
  resolvedPage,
} from '../rights/contests/store.ts';
import { describeDecision } from '../rights/dsar/service.ts';
import { countTrail, readDeviceContests, readDeviceTrail, readOverride } from '../rights/dsar/store.ts';
import type { Extension, Ruling } from '../schema/rights.ts';
import type { Context, Staff } from './context.ts';
import { type Draft, deleteDrafts, draftsOf, saveDraft } from './session-store.ts';

/** A case as the console shows it, and the rulings on it over the contest service. */

const TRAIL_ROWS = 20;
const AUDIT_ROWS = 50;

/** The latest decisions of the device, this one among them, and what else there is of it. */
async function deviceOf(database: Database, { kid, contestId, durable }: Contest) {
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

/** Null: not found in this tenant. */
export async function readCase(context: Context, staff: Staff, contestId: string) {
  const { database, contestTexts } = context;
  const { kid } = staff;
  const contest = await findContest(database.read, contestTexts, { contestId });
  const tenant = context.tenantOf(kid);
  if (contest?.kid !== kid || !tenant) return null;
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
      stored && describeDecision({ requestId, verdict: stored.verdict, summary: null }, tenant, contest),
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

type Change = (contests: Context['rights']['contests']) => Promise<Contest>;

/** The change deletes the drafts that it was typed as. @returns the case after it */
async function changed({ rights, database }: Context, staff: Staff, kinds: Draft['kind'][], change: Change) {
  const contest = await change(rights.contests);
  const { kid, ref: actor } = staff;
  await deleteDrafts(database, { kid, actor, contestId: contest.contestId }, kinds);
  return contest;
}

export const askSubject = (context: Context, staff: Staff, contestId: string, question: string) =>
  changed(context, staff, ['ask'], (contests) => contests.ask(staff, contestId, question));

export const extendCase = (context: Context, staff: Staff, contestId: string, extension: Extension) =>
  changed(context, staff, ['extend'], (contests) => contests.extend(staff, contestId, extension));

export const resolveCase = (context: Context, staff: Staff, ruling: Ruling) =>
  changed(context, staff, ['resolve', 'ask', 'extend'], (contests) => contests.resolve(staff, ruling));

/** What staff typed and did not send, for a day: encrypted as the words of its contest are. */

type Author = Pick<Staff, 'kid' | 'ref'>;

/** Four times what a reason takes. */
const MAX_KEPT = 16_000;

/** An empty text takes away what was kept. @returns whether it is kept: not of a contest that is not there */
async function keepDraft(context: Context, by: Author, contestId: string, draft: Draft) {
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

/** @returns whether all that was typed is kept */
export async function keepTyped(
  context: Context,
  by: Author,
  contestId: string,
  typed: readonly (Draft | null)[],
): Promise<boolean> {
  let kept = true;
  for (const one of typed) {
    if (one === null) continue;
    const fits = one.text.length <= MAX_KEPT;
    const saved = fits && (await keepDraft(context, by, contestId, one));
    if (!saved && one.text !== '') kept = false;
  }
  return kept;
}

/** Without those that cannot be opened, as under a key that is gone: a draft lives for a day at most. */
async function readDrafts({ database, contestTexts }: Context, { kid, ref }: Author, contestId: string) {
  const drafts = await draftsOf(database, kid, ref, contestId);
  return drafts.flatMap((draft) => {
    const text = tryOr(() => contestTexts.decrypt(kid, contestId, draft.text).reason, null);
    return text === null ? [] : [{ ...draft, text }];
  });
}

/** The review queue. */

export async function readQueue(
  context: Context,
  staff: Staff,
  state: 'open' | 'resolved',
  query: QueueQuery,
) {
  const { database, contestTexts, clock } = context;
  const { kid, ref: me, role } = staff;
  const viewer = { kid, me, now: clock() };
  const rows: readonly QueueRow[] =
    state === 'open'
      ? await queuePage(database, contestTexts, viewer, query)
      : (await resolvedPage(database, contestTexts, kid, query)).map((contest) => ({
          group: 'free',
          contest,
        }));
  const [counts, load] = await Promise.all([
    queueCounts(database, viewer),
    role === 'dpo' ? readWorkload(database, kid, viewer.now) : [],
  ]);
  // Load: of the colleagues, for a dpo. Counts above the cap are shown as "more than".
  return { rows, counts, load, cap: COUNT_CAP };
}

/** By the id of a contest or of a request. */
export async function findCase({ database, contestTexts }: Context, { kid }: Staff, id: string) {
  if (!isPlainText(id)) return null;
  const byRequest = await findContest(database.read, contestTexts, { kid, requestId: id });
  if (byRequest) return byRequest.contestId;
  const byId = await findContest(database.read, contestTexts, { contestId: id });
  return byId?.kid === kid ? byId.contestId : null;
}
