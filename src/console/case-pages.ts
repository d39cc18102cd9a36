import type { Router } from 'express';
import { Refusal } from '../lib/errors.ts';
import { activeClaim, type Contest, OUTCOMES, type Outcome } from '../rights/contests/contest.ts';
import { reasonSchema } from '../schema/rights.ts';
import { field } from './form.ts';
import type { Draft, DraftPort } from './ports.ts';
import type { CasePort, CaseView } from './ports-cases.ts';
import type { Render } from './render.ts';
import type { Desk, Posted, Visit } from './session-guard.ts';
import type { Translate } from './strings-files.ts';
import { keepTyped, type TypedByKind, typedOf, withTemplate } from './typed.ts';

/** One case: the evidence, and what a reviewer may do. */

/** Starting points for a reason; sent as they are they are refused. */
const TEMPLATES = ['shared', 'tool', 'agreed', 'driven'] as const;
const DONE = ['claimed', 'released', 'asked', 'resolved', 'proposed', 'changed', 'unchanged', 'started'];
const LOST = ['claimed-by-another', 'stale-version', 'already-resolved', 'self-review-denied'];
const CONTEST_ID = /^con_[0-9A-HJKMNP-TV-Z]{26}$/;

export interface CaseDeps {
  readonly cases: CasePort;
  readonly drafts: DraftPort;
  readonly desk: Desk;
  readonly render: Render;
  readonly t: Translate;
}

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

function makeCaseDesk({ cases, drafts, render, t }: CaseDeps) {
  async function read(visit: Visit): Promise<CaseView> {
    const { id } = visit.request.params;
    const view = typeof id === 'string' && CONTEST_ID.test(id) ? await cases.read(visit.staff, id) : null;
    if (!view) throw new Refusal('no-such-contest');
    return view;
  }

  function show(visit: Visit, view: CaseView, more: Readonly<Record<string, unknown>>, status = 200): void {
    const { contest } = view;
    const { staff, now, response } = visit;
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
      done: null,
      problem: null,
      kept: false,
      ...more,
    };
    render(response, 'case', values, status);
  }

  const texts = TEMPLATES.map((name) => t(`template.${name}.text`));

  function start(typed: Draft | null, template: unknown): Draft | null {
    const known = TEMPLATES.find((name) => name === template);
    if (!known) return typed;
    const text = withTemplate(typed?.text ?? '', t(`template.${known}.text`), texts);
    return { kind: 'resolve', text, outcome: typed?.outcome ?? t(`template.${known}.outcome`) };
  }

  /** What is wrong with a typed text; null when it may be stored. */
  function fault(text: string): string | null {
    if (!reasonSchema.safeParse(text).success) return 'reason';
    return texts.some((one) => one.trim() === text.trim()) ? 'template' : null;
  }

  /** Not what the page itself had put there. */
  const own = (view: CaseView, typed: Draft | null): Draft | null =>
    typed?.text === view.contest.proposal?.reason ? null : typed;

  const keep = (posted: Posted, view: CaseView, typed: readonly (Draft | null)[]): Promise<boolean> =>
    keepTyped(
      drafts,
      posted.staff,
      view.contest.contestId,
      typed.map((one) => own(view, one)),
    );

  /** Not done: the page with what was typed, which is also kept for whatever is pressed next. */
  async function refuse(posted: Posted, view: CaseView, problem: string, status = 400): Promise<void> {
    const typed = typedOf(posted.form, posted.request.path);
    await keep(posted, view, [typed.resolve, typed.ask]);
    show(posted, view, { problem, typed }, status);
  }

  /** Somebody else was faster: the case as it is now, who holds it, and what was typed. */
  async function lost(posted: Posted, error: unknown): Promise<void> {
    if (!(error instanceof Refusal) || !LOST.includes(error.code)) throw error;
    await refuse(posted, await read(posted), error.code, error.status);
  }

  return { read, show, start, fault, keep, refuse, lost };
}

function done(posted: Posted, view: CaseView, word: string, fragment = ''): void {
  posted.response.redirect(303, `${linkOf(view)}?done=${word}${fragment}`);
}

export function casePages(router: Router, deps: CaseDeps): void {
  const { cases, desk } = deps;
  const { read, show, start, fault, keep, refuse, lost } = makeCaseDesk(deps);

  router.get(
    '/contests/:id',
    desk.page('reviewer', async (visit) => {
      const view = await read(visit);
      const { query } = visit.request;
      const word = DONE.find((name) => name === query['done']) ?? null;
      const draft = (kind: Draft['kind']) => view.drafts.find((one) => one.kind === kind) ?? null;
      const resolve = start(draft('resolve') ?? beginning(view), query['template']);
      const typed: TypedByKind = { resolve, ask: draft('ask') };
      const kept = view.drafts.length > 0 && view.contest.status === 'open' && word !== 'started';
      show(visit, view, { done: word, typed, kept });
    }),
  );

  function act(name: string, work: (posted: Posted, view: CaseView) => Promise<void>): void {
    router.post(
      `/contests/:id/${name}`,
      desk.action('reviewer', async (posted) => {
        const view = await read(posted);
        try {
          await work(posted, view);
        } catch (error) {
          await lost(posted, error);
        }
      }),
    );
  }

  act('claim', async (posted, view) => {
    await cases.claim(posted.staff, view.contest.contestId);
    await keep(posted, view, Object.values(typedOf(posted.form, posted.request.path)));
    done(posted, view, 'claimed');
  });

  act('release', async (posted, view) => {
    await cases.release(posted.staff, view.contest.contestId);
    await keep(posted, view, Object.values(typedOf(posted.form, posted.request.path)));
    if (posted.form.get('from') === 'queue') posted.response.redirect(303, '/console/queue?done=released');
    else done(posted, view, 'released');
  });

  act('template', async (posted, view) => {
    const typed = typedOf(posted.form, posted.request.path);
    await keep(posted, view, [start(typed.resolve, posted.form.get('template')), typed.ask]);
    done(posted, view, 'started', '#resolve');
  });

  act('ask', async (posted, view) => {
    const typed = typedOf(posted.form, posted.request.path);
    const text = typed.ask?.text ?? '';
    if (fault(text) !== null) {
      await refuse(posted, view, 'question');
      return;
    }
    await cases.ask(posted.staff, view.contest.contestId, text.trim());
    await keep(posted, view, [typed.resolve]);
    done(posted, view, 'asked');
  });

  act('resolve', async (posted, view) => {
    const { form, staff } = posted;
    const text = form.get('text') ?? '';
    const outcome = OUTCOMES.find((name) => name === field(form, 'outcome')) ?? null;
    const version = /^\d{1,9}$/.exec(field(form, 'version') ?? '')?.[0];
    const proposal = toConfirm(view, staff.ref);
    const turned = proposal !== null && proposal.outcome !== outcome && proposal.reason === text.trim();
    const problem = outcome === null ? 'outcome' : turned ? 'turned' : fault(text);
    if (problem !== null || version === undefined) {
      await refuse(posted, view, problem ?? 'stale-version');
      return;
    }
    const { contestId } = view.contest;
    const ruling = { outcome: outcome as Outcome, reason: text.trim(), version: Number(version) };
    const after = await cases.resolve(staff, { contestId, ...ruling });
    // The same outcome by somebody else changes nothing, and this reason is shown to nobody.
    if (after.resolvedBy !== null && after.resolvedBy.ref !== staff.ref)
      throw new Refusal('already-resolved');
    done(posted, view, doneBy(after, view.contest, staff.ref));
  });
}
