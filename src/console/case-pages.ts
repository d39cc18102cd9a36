import type { Response, Router } from 'express';
import { Refusal } from '../lib/errors.ts';
import { activeClaim, OUTCOMES, type Outcome } from '../rights/contest.ts';
import { reasonSchema } from '../schema/rights.ts';
import type { Desk, Posted, Visit } from './desk.ts';
import { field } from './form.ts';
import type { CasePort, CaseView } from './ports-cases.ts';
import type { Render } from './render.ts';
import type { Translate } from './strings.ts';

/** One case: the evidence, and what a reviewer may do. */

/** Starting points for a reason; sent as they are they are refused. */
const TEMPLATES = ['shared', 'tool', 'agreed', 'driven'] as const;
const DONE = ['claimed', 'released', 'asked', 'resolved', 'proposed'];
const CONTEST_ID = /^con_[0-9A-HJKMNP-TV-Z]{26}$/;

/** What stands in the forms: typed just now, kept from an expired session, or a template. */
interface Typed {
  readonly kind: 'resolve' | 'ask';
  readonly text: string;
  readonly outcome: string | null;
}

export interface CaseDeps {
  readonly cases: CasePort;
  readonly desk: Desk;
  readonly render: Render;
  readonly t: Translate;
}

export function casePages(router: Router, { cases, desk, render, t }: CaseDeps): void {
  async function read(visit: Visit): Promise<CaseView> {
    const { id } = visit.request.params;
    const view = typeof id === 'string' && CONTEST_ID.test(id) ? await cases.read(visit.staff, id) : null;
    if (!view) throw new Refusal('no-such-contest');
    return view;
  }

  function show(
    visit: Visit,
    view: CaseView,
    more: Readonly<Record<string, unknown>> = {},
    status = 200,
  ): void {
    const { contest } = view;
    const { staff, now } = visit;
    const claim = activeClaim(contest, now);
    const ownProposal = contest.proposal?.by === staff.ref;
    render(
      visit.response as Response,
      'case',
      {
        here: 'queue',
        view,
        cap: view.cap,
        claim,
        holds: claim?.by === staff.ref,
        isOwn: contest.filedBy === staff.ref,
        ownProposal,
        templates: TEMPLATES,
        done: null,
        problem: null,
        typed: { resolve: null, ask: null },
        ...more,
      },
      status,
    );
  }

  function typedOf(view: CaseView, template: unknown): Record<Typed['kind'], Typed | null> {
    const drafts = Object.fromEntries(view.drafts.map((draft) => [draft.kind, draft])) as Record<
      string,
      Typed
    >;
    const known = TEMPLATES.find((name) => name === template);
    const started = known
      ? {
          kind: 'resolve' as const,
          text: t(`template.${known}.text`),
          outcome: t(`template.${known}.outcome`),
        }
      : null;
    return { resolve: started ?? drafts['resolve'] ?? null, ask: drafts['ask'] ?? null };
  }

  router.get(
    '/contests/:id',
    desk.page('reviewer', async (visit) => {
      const view = await read(visit);
      const { done, template } = visit.request.query;
      const known = DONE.find((name) => name === done) ?? null;
      const kept = view.drafts.length > 0 && view.contest.status === 'open';
      show(visit, view, { done: known, typed: typedOf(view, template), kept });
    }),
  );

  /** Somebody else was faster: the case as it is now, who holds it, and what was typed. */
  async function lost(posted: Posted, error: unknown, typed: Typed | null): Promise<void> {
    const known = ['claimed-by-another', 'stale-version', 'already-resolved', 'self-review-denied'];
    if (!(error instanceof Refusal) || !known.includes(error.code)) throw error;
    const view = await read(posted);
    const fields = { resolve: null, ask: null, ...(typed ? { [typed.kind]: typed } : {}) };
    show(posted, view, { problem: error.code, typed: fields }, error.status);
  }

  function act(name: string, work: (posted: Posted, id: string) => Promise<string>): void {
    router.post(
      `/contests/:id/${name}`,
      desk.action('reviewer', async (posted) => {
        const { contest } = await read(posted);
        try {
          posted.response.redirect(303, await work(posted, contest.contestId));
        } catch (error) {
          await lost(posted, error, null);
        }
      }),
    );
  }

  const back = (posted: Posted, id: string, done: string): string =>
    posted.form.get('from') === 'queue' && done === 'released'
      ? `/console/queue?done=${done}`
      : `/console/contests/${id}?done=${done}`;

  act('claim', async (posted, id) => {
    await cases.claim(posted.staff, id);
    return back(posted, id, 'claimed');
  });
  act('release', async (posted, id) => {
    await cases.release(posted.staff, id);
    return back(posted, id, 'released');
  });

  /** The typed text as it may be stored, or what is wrong with it. */
  function check(text: string): string | null {
    if (!reasonSchema.safeParse(text).success) return 'reason';
    const verbatim = TEMPLATES.some((name) => t(`template.${name}.text`).trim() === text.trim());
    return verbatim ? 'template' : null;
  }

  router.post(
    '/contests/:id/ask',
    desk.action('reviewer', async (posted) => {
      const view = await read(posted);
      const text = posted.form.get('text') ?? '';
      const typed: Typed = { kind: 'ask', text, outcome: null };
      if (check(text) !== null) {
        show(posted, view, { problem: 'question', typed: { resolve: null, ask: typed } }, 400);
        return;
      }
      try {
        await cases.ask(posted.staff, view.contest.contestId, text.trim());
        posted.response.redirect(303, back(posted, view.contest.contestId, 'asked'));
      } catch (error) {
        await lost(posted, error, typed);
      }
    }),
  );

  router.post(
    '/contests/:id/resolve',
    desk.action('reviewer', async (posted) => {
      const view = await read(posted);
      const text = posted.form.get('text') ?? '';
      const outcome = OUTCOMES.find((name) => name === field(posted.form, 'outcome')) ?? null;
      const version = /^\d{1,9}$/.exec(field(posted.form, 'version') ?? '')?.[0];
      const typed: Typed = { kind: 'resolve', text, outcome };
      const problem = outcome === null ? 'outcome' : check(text);
      if (problem !== null || version === undefined) {
        const why = problem ?? 'stale-version';
        show(posted, view, { problem: why, typed: { resolve: typed, ask: null } }, 400);
        return;
      }
      const ruling = { outcome: outcome as Outcome, reason: text.trim(), version: Number(version) };
      const { contestId } = view.contest;
      try {
        const after = await cases.resolve(posted.staff, { contestId, ...ruling });
        // The same outcome by somebody else changes nothing, and this reason is told to nobody.
        if (after.resolvedBy !== null && after.resolvedBy.ref !== posted.staff.ref)
          throw new Refusal('already-resolved');
        const done = after.status === 'resolved' ? 'resolved' : 'proposed';
        posted.response.redirect(303, back(posted, contestId, done));
      } catch (error) {
        await lost(posted, error, typed);
      }
    }),
  );
}
