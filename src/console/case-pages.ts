import { isReconciled } from '../ingest/verdict/verdict.ts';
import { Refusal } from '../lib/errors.ts';
import { complaintStatus } from '../rights/contests/complaint.ts';
import { activeClaim, type Contest } from '../rights/contests/contest.ts';
import { extensionSchema, OUTCOMES } from '../schema/rights.ts';
import {
  acknowledgeCase,
  answerCase,
  askSubject,
  type CaseView,
  extendCase,
  findNextCaseFor,
  readCase,
  resolveCase,
  saveTyped,
} from './case-queue-service.ts';
import { redirectDone, takeFlash } from './flash.ts';
import { type Form, matchParameter, readField, readTypedTexts, type TypedByKind } from './form.ts';
import { splitStatement } from './headline.ts';
import { findReasonProblem, GAP, isReason, startFromTemplate, TEMPLATES } from './reason.ts';
import type { ConsoleVisit, FormVisit, PageTable } from './session-guard-service.ts';
import type { Draft } from './session-store.ts';

/** The page of one case: its evidence, and the forms of a reviewer. */

/** After these results the next due case opens. */
const NEXT_AFTER = ['resolved', 'allowed', 'proposed'];
const CONFLICTS = ['claimed-by-another', 'stale-version', 'already-resolved', 'self-review-denied'];
const CONTEST_ID = /^con_[0-9A-HJKMNP-TV-Z]{26}$/;

/** The field that a problem is about, and its tab. All other problems are about the whole case. */
const FIELDS: Readonly<Record<string, { readonly field: string; readonly tab: string }>> = {
  reason: { field: 'reason', tab: 'decide' },
  template: { field: 'reason', tab: 'decide' },
  gap: { field: 'reason', tab: 'decide' },
  copied: { field: 'reason', tab: 'decide' },
  outcome: { field: 'outcome-overturned', tab: 'decide' },
  question: { field: 'question', tab: 'ask' },
  extension: { field: 'extension', tab: 'extend' },
};

const linkTo = ({ contest }: CaseView): string => `/console/contests/${contest.contestId}`;

/** With `review.fourEyes`: the ruling that a colleague proposed, and this reviewer can confirm. */
function findColleaguesProposal({ contest, fourEyes }: CaseView, myRef: string): Contest['proposal'] {
  const { proposal, status } = contest;
  return status === 'open' && fourEyes && proposal !== null && proposal.by !== myRef ? proposal : null;
}

/**
 * The form of the ruling starts with one's own proposal, which can be changed. A colleague writes a separate
 * reason.
 */
function createDraftFromProposal({ contest: { proposal, status } }: CaseView, myRef: string): Draft | null {
  if (status !== 'open' || proposal?.by !== myRef) return null;
  return { kind: 'resolve', text: proposal.reason, outcome: proposal.outcome };
}

/** @returns the key of the sentence in WORDS.caseDone */
function chooseResultKey(after: Contest, before: Contest, myRef: string): string {
  if (after.status === 'resolved') return 'resolved';
  if (after.version === before.version) return 'unchanged';
  return before.proposal?.by === myRef ? 'changed' : 'proposed';
}

async function requireCase({ context, request, staff }: ConsoleVisit): Promise<CaseView> {
  const [id] = matchParameter(request.params['id'], CONTEST_ID);
  const view = id === undefined ? null : await readCase(context, staff, id);
  if (!view) throw new Refusal('no-such-contest');
  return view;
}

function renderCase(
  { context, staff, now, response }: ConsoleVisit,
  view: CaseView,
  { status = 200, ...extraValues }: { readonly status?: number; readonly [name: string]: unknown },
): void {
  const { contest } = view;
  const claim = activeClaim(contest, now);
  const values = {
    here: 'queue',
    view,
    cap: view.cap,
    claim,
    isClaimant: claim?.by === staff.ref,
    isOwn: contest.filedBy === staff.ref,
    hasOwnProposal: view.fourEyes && contest.status === 'open' && contest.proposal?.by === staff.ref,
    colleaguesProposal: findColleaguesProposal(view, staff.ref),
    templates: TEMPLATES,
    classStays: !isReconciled(contest.class),
    headline: splitStatement(contest.statement ?? ''),
    gap: GAP,
    done: null,
    decided: null,
    problem: null,
    wrong: null,
    hasDrafts: false,
    isAllowing: false,
    ...extraValues,
  };
  if (contest.kind === 'contest') context.render(response, 'case', values, status);
  else context.render(response, 'complaint', { ...values, status: complaintStatus(contest) }, status);
}

const allowsAgent = (form: Form): boolean => readField(form, 'rule') === 'allow';

const readTyped = ({ form, request }: FormVisit): TypedByKind => readTypedTexts(form, request.path);

/** Saves the texts as drafts, except a reason that the page itself had filled in. */
function saveDrafts(
  { context, staff }: FormVisit,
  { contest: { contestId, proposal } }: CaseView,
  typed: readonly (Draft | null)[],
): Promise<boolean> {
  const ownTexts = typed.map((one) => (one?.text === proposal?.reason ? null : one));
  return saveTyped(context, staff, contestId, ownTexts);
}

/**
 * Shows the page again with the problem. The typed texts are
 * also saved as drafts, for the next button the person presses.
 */
async function refuse(
  visit: FormVisit,
  view: CaseView,
  { problem, status = 400 }: { readonly problem: string; readonly status?: number },
): Promise<void> {
  const typed = readTyped(visit);
  await saveDrafts(visit, view, Object.values(typed));
  renderCase(visit, view, {
    problem,
    wrong: FIELDS[problem] ?? null,
    typed,
    status,
    isAllowing: allowsAgent(visit.form),
  });
}

/** The problem of a form; or the sentence to show, the texts to keep as drafts, and the next address. */
type ActResult =
  | { readonly problem: string }
  | {
      readonly done: string;
      readonly keep?: readonly (Draft | null)[];
      readonly to?: string;
      readonly decided?: string;
    };

type CaseAct = (visit: FormVisit, view: CaseView, typed: TypedByKind) => Promise<ActResult> | ActResult;

/**
 * Runs the act of a form. If a colleague was faster, the page
 * shows the current case, who claimed it, and the typed texts.
 */
function handleAct(act: CaseAct): (visit: FormVisit) => Promise<void> {
  return async (visit) => {
    const view = await requireCase(visit);
    try {
      const result = await act(visit, view, readTyped(visit));
      if ('problem' in result) {
        await refuse(visit, view, result);
        return;
      }
      const { done, keep: drafts = [], to = linkTo(view), decided = null } = result;
      await saveDrafts(visit, view, drafts);
      redirectDone(visit, to, done, { decided });
    } catch (error) {
      if (!(error instanceof Refusal) || !CONFLICTS.includes(error.code)) throw error;
      const current = await requireCase(visit);
      await refuse(visit, current, { problem: error.code, status: error.status });
    }
  };
}

async function showCase(visit: ConsoleVisit): Promise<void> {
  const view = await requireCase(visit);
  const { query } = visit.request;
  const { done = null, decided = null } = takeFlash(visit) ?? {};
  const draft = (kind: Draft['kind']) => view.drafts.find((one) => one.kind === kind) ?? null;
  const resolve = startFromTemplate(
    draft('resolve') ?? createDraftFromProposal(view, visit.staff.ref),
    query['template'],
  );
  const typed: TypedByKind = { resolve, ask: draft('ask'), extend: draft('extend') };
  const hasDrafts = view.drafts.length > 0 && view.contest.status === 'open' && done !== 'started';
  renderCase(visit, view, { done, decided, typed, hasDrafts });
}

const claimCase: CaseAct = async ({ context, staff }, { contest }, typed) => {
  await context.rights.contests.claim(staff, contest.contestId, staff.label);
  return { done: 'claimed', keep: Object.values(typed) };
};

const releaseCase: CaseAct = async ({ context, staff, form }, { contest }, typed) => {
  await context.rights.contests.release(staff, contest.contestId);
  const result = { done: 'released', keep: Object.values(typed) };
  return form.get('from') === 'queue' ? { ...result, to: '/console/queue' } : result;
};

const startTemplate: CaseAct = ({ form }, view, { resolve, ...otherTexts }) => {
  const draft = startFromTemplate(resolve, form.get('template'));
  const to = `${linkTo(view)}#resolve`;
  return { done: 'started', keep: [draft, ...Object.values(otherTexts)], to };
};

const askQuestion: CaseAct = async ({ context, staff }, { contest }, typed) => {
  const text = typed.ask?.text ?? '';
  if (!isReason(text)) return { problem: 'question' };
  await askSubject(context, staff, contest.contestId, text.trim());
  return { done: 'asked', keep: [typed.resolve, typed.extend] };
};

const extendDueDate: CaseAct = async ({ context, staff, form, now }, { contest, extendDays }, typed) => {
  const typedExtension = { days: readField(form, 'days'), reason: typed.extend?.text.trim() };
  const extension = extensionSchema.safeParse(typedExtension).data;
  if (!extension || extension.days > extendDays || contest.dueAt < now) return { problem: 'extension' };
  await extendCase(context, staff, contest.contestId, extension);
  return { done: 'extended', keep: [typed.resolve, typed.ask] };
};

const ruleOnCase: CaseAct = async ({ context, form, staff }, view) => {
  const reason = (form.get('text') ?? '').trim();
  const outcome = OUTCOMES.find((name) => name === readField(form, 'outcome')) ?? null;
  const [version] = matchParameter(readField(form, 'version'), /^\d{1,9}$/);
  const { proposal } = view.contest;
  const colleaguesReason = proposal !== null && proposal.by !== staff.ref ? proposal.reason : null;
  const problem = outcome === null ? 'outcome' : findReasonProblem(reason, colleaguesReason);
  if (outcome === null || problem !== null || version === undefined)
    return { problem: problem ?? 'stale-version' };
  const { contestId } = view.contest;
  const ruling = { contestId, outcome, reason, version: Number(version) };
  const allowed = allowsAgent(form) ? view.refusedAgent : null;
  const after = await resolveCase(context, staff, ruling, allowed);
  // A colleague resolved it with the same outcome: this
  // reason was not recorded, so the reviewer must hear of it.
  if (after.resolvedBy !== null && after.resolvedBy.ref !== staff.ref) throw new Refusal('already-resolved');
  const result = chooseResultKey(after, view.contest, staff.ref);
  const done = result === 'resolved' && outcome === 'overturned' && allowed ? 'allowed' : result;
  const next = NEXT_AFTER.includes(done) ? await findNextCaseFor(context, staff, view.contest) : null;
  return next === null ? { done } : { done, to: `/console/contests/${next}`, decided: contestId };
};

const acknowledge: CaseAct = async ({ context, staff }, { contest }, typed) => {
  await acknowledgeCase(context, staff, contest.contestId);
  return { done: 'acknowledged', keep: Object.values(typed) };
};

const answerComplaint: CaseAct = async ({ context, staff, form }, { contest }) => {
  const outcome = (form.get('text') ?? '').trim();
  if (!isReason(outcome)) return { problem: 'reason' };
  await answerCase(context, staff, contest.contestId, outcome);
  return { done: 'complaintAnswered' };
};

export const casePages: PageTable = {
  pages: { '/contests/:id': ['reviewer', showCase] },
  forms: {
    '/contests/:id/claim': ['reviewer', handleAct(claimCase)],
    '/contests/:id/release': ['reviewer', handleAct(releaseCase)],
    '/contests/:id/template': ['reviewer', handleAct(startTemplate)],
    '/contests/:id/ask': ['reviewer', handleAct(askQuestion)],
    '/contests/:id/extend': ['reviewer', handleAct(extendDueDate)],
    '/contests/:id/resolve': ['reviewer', handleAct(ruleOnCase)],
    '/contests/:id/acknowledge': ['reviewer', handleAct(acknowledge)],
    '/contests/:id/answer': ['reviewer', handleAct(answerComplaint)],
  },
};
