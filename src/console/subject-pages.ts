import type { Router } from 'express';
import { Refusal } from '../lib/errors.ts';
import type { Scope } from '../rights/erase/erasure.ts';
import { ERASURE_SCOPES, eraseTargetSchema, reasonSchema } from '../schema/rights.ts';
import { type Form, field } from './form.ts';
import type { SubjectKey, SubjectPort } from './ports-dpo.ts';
import type { Render } from './render.ts';
import type { Desk, Posted, Visit } from './session-guard.ts';

/**
 * A dpo's work on one subject. Ids travel in the bodies of forms and never in an address: addresses end in logs and
 * histories.
 */

const KINDS = ['visitor', 'request', 'principal'] as const;
const RECEIPTS = 100;
const RECEIPT_ID = /^era_[0-9A-HJKMNP-TV-Z]{26}$/;

/** Null for what cannot be anybody's id. */
function readKey(form: Form): SubjectKey | null {
  const kind = KINDS.find((name) => name === form.get('kind'));
  const id = field(form, 'id');
  if (kind === undefined || id === null) return null;
  const target = eraseTargetSchema.safeParse({ [`${kind}Id`]: id }).data;
  return target ? { kind, id: target[`${kind}Id`] ?? id } : null;
}

function requireKey(form: Form): SubjectKey {
  const key = readKey(form);
  if (!key) throw new Refusal('invalid-request');
  return key;
}

/** As it was typed, forgiving about spaces, dashes and capitals. */
const bare = (text: string): string => text.replace(/[\s-]/g, '').toLowerCase();

export function subjectPages(router: Router, subjects: SubjectPort, desk: Desk, render: Render): void {
  const start = { here: 'subjects', view: null, missed: false, problem: null, kind: 'visitor', id: '' };

  router.get(
    '/subjects',
    desk.page('dpo', ({ response }) => Promise.resolve(render(response, 'subjects', start))),
  );

  async function showSubject(
    posted: Posted,
    key: SubjectKey,
    more: object = {},
    status = 200,
  ): Promise<void> {
    const view = await subjects.find(posted.staff, key);
    const values = { ...start, ...key, view, missed: view === null, scopes: ERASURE_SCOPES, ...more };
    render(posted.response, 'subjects', values, view ? status : 404);
  }

  router.post(
    '/subjects',
    desk.action('dpo', async (posted) => {
      const key = readKey(posted.form);
      if (key) await showSubject(posted, key);
      else render(posted.response, 'subjects', { ...start, missed: true, problem: 'id' }, 400);
    }),
  );

  async function showPlan(posted: Posted, key: SubjectKey, problem: string | null): Promise<void> {
    const plan = await subjects.plan(posted.staff, key);
    if (!plan) render(posted.response, 'subjects', { ...start, ...key, missed: true }, 404);
    else render(posted.response, 'erase', { here: 'subjects', plan, problem }, problem === null ? 200 : 400);
  }

  router.post(
    '/subjects/plan',
    desk.action('dpo', (posted) => showPlan(posted, requireKey(posted.form), null)),
  );

  router.post(
    '/subjects/erase',
    desk.action('dpo', async (posted) => {
      const key = requireKey(posted.form);
      const plan = await subjects.plan(posted.staff, key);
      if (!plan || bare(posted.form.get('confirm') ?? '') !== bare(plan.handle)) {
        await showPlan(posted, key, 'confirm');
        return;
      }
      const { receiptId } = await subjects.erase(posted.staff, key);
      posted.response.redirect(303, `/console/receipts/${receiptId}?done=erased`);
    }),
  );

  router.post(
    '/subjects/export',
    desk.action('dpo', async (posted) => {
      const key = requireKey(posted.form);
      const unnamed = posted.form.get('unnamed') === 'on';
      const job = await subjects.startExport(posted.staff, key, unnamed);
      if (job === 'unnamed') await showSubject(posted, key, { problem: 'unnamed' }, 400);
      else if (job === null) render(posted.response, 'subjects', { ...start, ...key, missed: true }, 404);
      else posted.response.redirect(303, `/console/jobs/${job}`);
    }),
  );

  router.post(
    '/subjects/hold',
    desk.action('dpo', async (posted) => {
      const { form, staff, response } = posted;
      const key = requireKey(form);
      const scopes = ERASURE_SCOPES.filter((scope): scope is Scope => form.get(`scope-${scope}`) === 'on');
      const basis = (form.get('basis') ?? '').trim();
      if (scopes.length === 0 || !reasonSchema.safeParse(basis).success) {
        await showSubject(posted, key, { problem: 'hold', basis, chosen: scopes }, 400);
        return;
      }
      if (!(await subjects.placeHold(staff, key, scopes, basis))) throw new Refusal('not-found');
      response.redirect(303, '/console/holds?done=placed');
    }),
  );

  holdPages(router, subjects, desk, render);
  receiptPages(router, subjects, desk, render);
}

/** Where a page of holds begins: a device by its keyed reference, and a kind of data. */
function readPlace(value: unknown): { readonly device: string; readonly scope: string } | null {
  const [, device, scope] = /^([\w-]{43})~([a-z-]{1,32})$/.exec(typeof value === 'string' ? value : '') ?? [];
  return device === undefined || scope === undefined ? null : { device, scope };
}

function holdPages(router: Router, subjects: SubjectPort, desk: Desk, render: Render): void {
  router.get(
    '/holds',
    desk.page('dpo', async ({ request, response, staff }) => {
      const { done } = request.query;
      const known = ['placed', 'released'].find((name) => name === done) ?? null;
      const after = readPlace(request.query['after']);
      const page = await subjects.holds(staff, after);
      const last = page.holds.at(-1);
      const next = page.more && last ? `/console/holds?after=${last.device}~${last.scope}` : null;
      const first = after === null ? null : '/console/holds';
      render(response, 'holds', { here: 'holds', holds: page.holds, first, next, done: known });
    }),
  );
  router.post(
    '/holds/release',
    desk.action('dpo', async ({ response, staff, form }) => {
      const released = await subjects.releaseHold(staff, form.get('device') ?? '', form.get('scope') ?? '');
      if (!released) throw new Refusal('not-found');
      const { receipt } = released;
      const to = receipt
        ? `/console/receipts/${receipt.receiptId}?done=released`
        : '/console/holds?done=released';
      response.redirect(303, to);
    }),
  );
}

function receiptPages(router: Router, subjects: SubjectPort, desk: Desk, render: Render): void {
  router.get(
    '/receipts',
    desk.page('dpo', async ({ response, staff }) => {
      const { receipts, unreadable } = await subjects.receipts(staff, RECEIPTS);
      const most = receipts.length + unreadable.length === RECEIPTS ? RECEIPTS : null;
      render(response, 'receipts', { here: 'receipts', receipts, unreadable, most });
    }),
  );
  router.get(
    '/receipts/:id',
    desk.page('dpo', async ({ request, response, staff }: Visit) => {
      const { id } = request.params;
      const known = typeof id === 'string' && RECEIPT_ID.test(id);
      const receipt = known ? await subjects.receipt(staff, id) : null;
      if (!receipt) throw new Refusal('not-found');
      const done = ['erased', 'released'].find((name) => name === request.query['done']) ?? null;
      render(response, 'receipt', { here: 'receipts', receipt, done });
    }),
  );
}
