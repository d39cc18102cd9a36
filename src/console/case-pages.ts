import { isReconciled } from '../ingest/decisions-service.ts';
import { Refusal } from '../lib/errors.ts';
import { activeClaim, type Contest } from '../rights/contests/contest.ts';
import { extensionSchema, OUTCOMES, reasonSchema } from '../schema/rights.ts';
import { askSubject, type CaseView, extendCase, keepTyped, readCase, resolveCase } from './cases-service.ts';
import { field, partsOf, type TypedByKind, typedOf, withTemplate } from './form.ts';
import type { ConsoleVisit, PageTable, Posted } from './session-guard.ts';
import type { Draft } from './session-store.ts';

/** One case: the evidence, and what a reviewer may do. */

/** Starting points for a reason; sent as they are they are refused. */
/** Beginnings of a reason that a reviewer completes in their own words. */
const TEMPLATES = [
  {
    id: 'shared',
    name: 'identical devices',
    text: 'The rules that fired describe many identical devices. What you say about your own use matches the other decisions: ',
    outcome: 'overturned',
  },
  {
    id: 'tool',
    name: 'an assistive tool',
    text: 'The sign that weighed most comes from a tool that a person uses, not from a program in a person’s place: ',
    outcome: 'overturned',
  },
  {
    id: 'agreed',
    name: 'explained by the person',
    text: 'Your statement explains what the rules took for automation, and the other decisions agree: ',
    outcome: 'overturned',
  },
  {
    id: 'driven',
    name: 'driven by a script',
    text: 'Several strong signs agree that a program drove this browser, and nothing in the statement explains them: ',
    outcome: 'upheld',
  },
] as const;
const DONE = [
  'claimed',
  'released',
  'asked',
  'extended',
  'resolved',
  'proposed',
  'changed',
  'unchanged',
  'started',
];
const LOST = ['claimed-by-another', 'stale-version', 'already-resolved', 'self-review-denied'];
const CONTEST_ID = /^con_[0-9A-HJKMNP-TV-Z]{26}$/;

const linkOf = ({ contest }: CaseView): string => `/console/contests/${contest.contestId}`;

/** With four eyes: what a colleague found, which a ruling of this person would confirm. */
function toConfirm({ contest, fourEyes }: CaseView, me: string): Contest['proposal'] {
  const { proposal, status } = contest;
  return status === 'open' && fourEyes && proposal !== null && proposal.by !== me ? proposal : null;
}

/** What the form of the ruling begins with: a colleague's reason to be confirmed, or one's own to be changed. */
function beginning({ contest: { proposal, status } }: CaseView): Draft | null {
  if (status !== 'open' || proposal === null) return null;
  return { kind: 'resolve', text: proposal.reason, outcome: proposal.outcome };
}

/** What became of a ruling, in a word. */
function doneBy(after: Contest, before: Contest, me: string): string {
  if (after.status === 'resolved') return 'resolved';
  if (after.version === before.version) return 'unchanged';
  return before.proposal?.by === me ? 'changed' : 'proposed';
}

async function requireCase({ context, request, staff }: ConsoleVisit): Promise<CaseView> {
  const [id] = partsOf(request.params['id'], CONTEST_ID);
  const view = id === undefined ? null : await readCase(context, staff, id);
  if (!view) throw new Refusal('no-such-contest');
  return view;
}

function show(
  { context, staff, now, response }: ConsoleVisit,
  view: CaseView,
  { status = 200, ...more }: { readonly status?: number; readonly [name: string]: unknown },
): void {
  const { contest } = view;
  const claim = activeClaim(contest, now);
  const values = {
    here: 'queue',
    view,
    cap: view.cap,
    claim,
    holds: claim?.by === staff.ref,
    isOwn: contest.filedBy === staff.ref,
    ownProposal: view.fourEyes && contest.status === 'open' && contest.proposal?.by === staff.ref,
    confirms: toConfirm(view, staff.ref),
    templates: TEMPLATES,
    stays: !isReconciled(contest.class),
    done: null,
    problem: null,
    kept: false,
    ...more,
  };
  context.render(response, 'case', values, status);
}

const TEMPLATE_TEXTS: readonly string[] = TEMPLATES.map(({ text }) => text);

function fromTemplate(typed: Draft | null, id: unknown): Draft | null {
  const template = TEMPLATES.find((one) => one.id === id);
  if (!template) return typed;
  const text = withTemplate(typed?.text ?? '', template.text, TEMPLATE_TEXTS);
  return { kind: 'resolve', text, outcome: typed?.outcome ?? template.outcome };
}

/** What is wrong with a typed text; null when it may be stored. */
function faultOf(text: string): string | null {
  if (!reasonSchema.safeParse(text).success) return 'reason';
  return TEMPLATE_TEXTS.some((one) => one.trim() === text.trim()) ? 'template' : null;
}

const typedIn = ({ form, request }: Posted): TypedByKind => typedOf(form, request.path);

/** Without what the page itself had put there. */
function keep(
  { context, staff }: Posted,
  { contest: { contestId, proposal } }: CaseView,
  typed: readonly (Draft | null)[],
): Promise<boolean> {
  const own = typed.map((one) => (one?.text === proposal?.reason ? null : one));
  return keepTyped(context, staff, contestId, own);
}

/** Not done: the page with what was typed, which is also kept for whatever is pressed next. */
async function refuse(
  posted: Posted,
  view: CaseView,
  { problem, status = 400 }: { readonly problem: string; readonly status?: number },
): Promise<void> {
  const typed = typedIn(posted);
  await keep(posted, view, Object.values(typed));
  show(posted, view, { problem, typed, status });
}

/** Why a form was refused; or where it leads, and what is kept of what was typed. */
type Acted =
  | { readonly problem: string }
  | { readonly done: string; readonly keep?: readonly (Draft | null)[]; readonly to?: string };

type Act = (posted: Posted, view: CaseView, typed: TypedByKind) => Promise<Acted> | Acted;

/** Somebody else was faster: the case as it is now, who holds it, and what was typed. */
function onCase(act: Act): (posted: Posted) => Promise<void> {
  return async (posted) => {
    const view = await requireCase(posted);
    try {
      const acted = await act(posted, view, typedIn(posted));
      if ('problem' in acted) {
        await refuse(posted, view, acted);
        return;
      }
      const { done, keep: kept = [], to = `${linkOf(view)}?done=${done}` } = acted;
      await keep(posted, view, kept);
      posted.response.redirect(303, to);
    } catch (error) {
      if (!(error instanceof Refusal) || !LOST.includes(error.code)) throw error;
      const current = await requireCase(posted);
      await refuse(posted, current, { problem: error.code, status: error.status });
    }
  };
}

async function showCase(visit: ConsoleVisit): Promise<void> {
  const view = await requireCase(visit);
  const { query } = visit.request;
  const word = DONE.find((name) => name === query['done']) ?? null;
  const draft = (kind: Draft['kind']) => view.drafts.find((one) => one.kind === kind) ?? null;
  const resolve = fromTemplate(draft('resolve') ?? beginning(view), query['template']);
  const typed: TypedByKind = { resolve, ask: draft('ask'), extend: draft('extend') };
  const kept = view.drafts.length > 0 && view.contest.status === 'open' && word !== 'started';
  show(visit, view, { done: word, typed, kept });
}

const claim: Act = async ({ context, staff }, { contest }, typed) => {
  await context.rights.contests.claim(staff, contest.contestId, staff.label);
  return { done: 'claimed', keep: Object.values(typed) };
};

const release: Act = async ({ context, staff, form }, { contest }, typed) => {
  await context.rights.contests.release(staff, contest.contestId);
  const kept = { done: 'released', keep: Object.values(typed) };
  return form.get('from') === 'queue' ? { ...kept, to: '/console/queue?done=released' } : kept;
};

const startTemplate: Act = ({ form }, view, { resolve, ...others }) => {
  const begun = fromTemplate(resolve, form.get('template'));
  const to = `${linkOf(view)}?done=started#resolve`;
  return { done: 'started', keep: [begun, ...Object.values(others)], to };
};

const ask: Act = async ({ context, staff }, { contest }, typed) => {
  const text = typed.ask?.text ?? '';
  if (faultOf(text) !== null) return { problem: 'question' };
  await askSubject(context, staff, contest.contestId, text.trim());
  return { done: 'asked', keep: [typed.resolve, typed.extend] };
};

const extend: Act = async ({ context, staff, form, now }, { contest, extendDays }, typed) => {
  const asked = { days: field(form, 'days'), reason: typed.extend?.text.trim() };
  const extension = extensionSchema.safeParse(asked).data;
  if (!extension || extension.days > extendDays || contest.dueAt < now) return { problem: 'extension' };
  await extendCase(context, staff, contest.contestId, extension);
  return { done: 'extended', keep: [typed.resolve, typed.ask] };
};

const resolve: Act = async ({ context, form, staff }, view) => {
  const text = form.get('text') ?? '';
  const reason = text.trim();
  const outcome = OUTCOMES.find((name) => name === field(form, 'outcome')) ?? null;
  const [version] = partsOf(field(form, 'version'), /^\d{1,9}$/);
  const proposal = toConfirm(view, staff.ref);
  const turned = proposal !== null && proposal.outcome !== outcome && proposal.reason === reason;
  const problem = outcome === null ? 'outcome' : turned ? 'turned' : faultOf(text);
  if (outcome === null || problem !== null || version === undefined)
    return { problem: problem ?? 'stale-version' };
  const { contestId } = view.contest;
  const ruling = { contestId, outcome, reason, version: Number(version) };
  const after = await resolveCase(context, staff, ruling);
  // The same outcome by somebody else changes nothing, and this reason is shown to nobody.
  if (after.resolvedBy !== null && after.resolvedBy.ref !== staff.ref) throw new Refusal('already-resolved');
  return { done: doneBy(after, view.contest, staff.ref) };
};

export const casePages: PageTable = {
  pages: { '/contests/:id': ['reviewer', showCase] },
  forms: {
    '/contests/:id/claim': ['reviewer', onCase(claim)],
    '/contests/:id/release': ['reviewer', onCase(release)],
    '/contests/:id/template': ['reviewer', onCase(startTemplate)],
    '/contests/:id/ask': ['reviewer', onCase(ask)],
    '/contests/:id/extend': ['reviewer', onCase(extend)],
    '/contests/:id/resolve': ['reviewer', onCase(resolve)],
  },
};
