import { Refusal } from '../lib/errors.ts';
import { erasureState, heldRows } from '../rights/erase/erasure-service.ts';
import { type ErasureReceipt, eraseTargetSchema, reasonSchema } from '../schema/rights.ts';
import { redirectDone, takeFlash } from './flash.ts';
import { buildAddress, type Form, matchParameter, readField } from './form.ts';
import { readHolds, releaseHoldOn } from './holds-service.ts';
import { positionLike, readTurn, turnPage } from './paging.ts';
import type { ConsoleVisit, FormVisit, PageTable } from './session-guard-service.ts';
import {
  eraseSubject,
  findExport,
  findSubject,
  holdSubject,
  planErase,
  type SubjectKey,
  writeExport,
} from './subjects-service.ts';

/**
 * The pages on which a dpo searches for a subject, exports or erases their data, and places legal
 * holds. Ids are only in the bodies of forms, because addresses end up in logs and histories.
 */

const KINDS = ['visitor', 'request', 'principal'] as const;
/** Rows per page of the lists of holds and of receipts. */
const PAGE = 100;
const RECEIPT_ID = /^era_[0-9A-HJKMNP-TV-Z]{26}$/;

/** @returns null if the text cannot be an id */
function readKey(form: Form): SubjectKey | null {
  const id = readField(form, 'id');
  const chosen = KINDS.find((name) => name === form.get('kind'));
  // The form begins at visitorId, and no visitorId looks like a requestId.
  const kind = chosen === 'visitor' && id?.startsWith('req_') ? 'request' : chosen;
  if (kind === undefined || id === null) return null;
  const target = eraseTargetSchema.safeParse({ [`${kind}Id`]: id }).data;
  return target ? { kind, id: target[`${kind}Id`] ?? id } : null;
}

function requireKey(form: Form): SubjectKey {
  const key = readKey(form);
  if (!key) throw new Refusal('invalid-request');
  return key;
}

/** People may type the handle that they confirm with or without spaces, dashes and capitals. */
const normaliseHandle = (text: string): string => text.replace(/[\s-]/g, '').toLowerCase();

const EMPTY_SEARCH = { here: 'subjects', view: null, missed: false, problem: null, kind: 'visitor', id: '' };

function showMissed({ context, response }: ConsoleVisit, key: SubjectKey): void {
  context.render(response, 'subjects', { ...EMPTY_SEARCH, ...key, missed: true }, 404);
}

async function showSubject(
  { context, staff, response }: FormVisit,
  key: SubjectKey,
  problem: object | null = null,
): Promise<void> {
  const view = await findSubject(context, staff, key);
  const values = { ...EMPTY_SEARCH, ...key, view, missed: view === null, ...problem };
  context.render(response, 'subjects', values, view === null ? 404 : problem === null ? 200 : 400);
}

async function searchSubject(visit: FormVisit): Promise<void> {
  const key = readKey(visit.form);
  if (key) await showSubject(visit, key);
  else
    visit.context.render(visit.response, 'subjects', { ...EMPTY_SEARCH, missed: true, problem: 'id' }, 400);
}

async function showPlan(visit: FormVisit, key: SubjectKey, problem: string | null) {
  const { context, staff, response } = visit;
  const plan = await planErase(context, staff, key);
  const status = problem === null ? 200 : 400;
  if (plan) context.render(response, 'erase', { here: 'subjects', plan, problem }, status);
  else showMissed(visit, key);
}

async function eraseFromForm(visit: FormVisit): Promise<void> {
  const { context, form, staff } = visit;
  const key = requireKey(form);
  const plan = await planErase(context, staff, key);
  if (!plan || normaliseHandle(form.get('confirm') ?? '') !== normaliseHandle(plan.handle)) {
    await showPlan(visit, key, 'confirm');
    return;
  }
  const { receiptId } = await eraseSubject(context, staff, key);
  redirectDone(visit, `/console/receipts/${receiptId}`, 'erased');
}

async function exportData(visit: FormVisit): Promise<void> {
  const { context, form, staff, response } = visit;
  const key = requireKey(form);
  const unnamed = form.get('unnamed') === 'on';
  const dsar = await findExport(context, staff, key, unnamed);
  if (dsar === null) {
    showMissed(visit, key);
    return;
  }
  if (dsar === 'unnamed') {
    await showSubject(visit, key, { problem: 'unnamed' });
    return;
  }
  response.set({
    'content-type': 'application/zip',
    'content-disposition': `attachment; filename="dsar-${dsar.head.generatedAt.slice(0, 10)}.zip"`,
    'cache-control': 'no-store',
  });
  await writeExport(context, staff, dsar, response);
}

async function placeFromForm(visit: FormVisit): Promise<void> {
  const { context, form, staff } = visit;
  const key = requireKey(form);
  const basis = (form.get('basis') ?? '').trim();
  if (!reasonSchema.safeParse(basis).success) {
    await showSubject(visit, key, { problem: 'hold', basis });
    return;
  }
  if (!(await holdSubject(context, staff, key, basis))) throw new Refusal('not-found');
  redirectDone(visit, '/console/holds', 'placed');
}

/** The keyed reference of a device. */
const DEVICE = /^[\w-]{43}$/;

async function showHolds(visit: ConsoleVisit): Promise<void> {
  const { context, request, response, staff } = visit;
  const { done = null, limited = [] } = takeFlash(visit) ?? {};
  const requestedTurn = readTurn(request.query, positionLike(DEVICE));
  const { holds, turn } = await readHolds(context, staff, requestedTurn, PAGE + 1);
  const { shown, ...links } = turnPage(holds, PAGE, turn, {
    positionOf: ({ device }) => device,
    linkTo: (page) => buildAddress('/console/holds', page),
  });
  context.render(response, 'holds', { here: 'holds', holds: shown, ...links, done, limited });
}

/** The number of receipt ids that fit into a cookie. */
const MAX_NAMED = 20;

async function releaseFromForm(visit: FormVisit): Promise<void> {
  const { context, staff, form } = visit;
  const limited = await releaseHoldOn(context, staff, form.get('device') ?? '');
  if (!limited) throw new Refusal('not-found');
  redirectDone(visit, '/console/holds', 'released', { limited: limited.slice(0, MAX_NAMED) });
}

const describeReceipt = (receipt: ErasureReceipt) => ({
  ...receipt,
  erasedAtMs: Date.parse(receipt.erasedAt),
  state: erasureState(receipt.scopes),
  held: heldRows(receipt.scopes),
});

async function showReceipts({ context, request, response, staff }: ConsoleVisit): Promise<void> {
  const turn = readTurn(request.query, positionLike(RECEIPT_ID));
  const { receipts, unreadable, ids } = await context.eraser.list(staff.kid, { limit: PAGE + 1, ...turn });
  const { shown, ...links } = turnPage(ids, PAGE, turn, {
    positionOf: (id) => id,
    linkTo: (page) => buildAddress('/console/receipts', page),
  });
  context.render(response, 'receipts', {
    here: 'receipts',
    receipts: receipts.filter(({ receiptId }) => shown.includes(receiptId)).map(describeReceipt),
    unreadable: unreadable.filter((id) => shown.includes(id)),
    ...links,
  });
}

async function showReceipt(visit: ConsoleVisit): Promise<void> {
  const { context, request, response, staff } = visit;
  const [id] = matchParameter(request.params['id'], RECEIPT_ID);
  const receipt = id === undefined ? null : await context.eraser.status(id);
  if (receipt?.tenant !== staff.kid) throw new Refusal('not-found');
  const done = takeFlash(visit)?.done === 'erased';
  context.render(response, 'receipt', { here: 'receipts', receipt: describeReceipt(receipt), done });
}

export const subjectPages: PageTable = {
  pages: {
    '/subjects': ['dpo', ({ context, response }) => context.render(response, 'subjects', EMPTY_SEARCH)],
    '/holds': ['dpo', showHolds],
    '/receipts': ['dpo', showReceipts],
    '/receipts/:id': ['dpo', showReceipt],
  },
  forms: {
    '/subjects': ['dpo', searchSubject],
    '/subjects/plan': ['dpo', (visit) => showPlan(visit, requireKey(visit.form), null)],
    '/subjects/erase': ['dpo', eraseFromForm],
    '/subjects/export': ['dpo', exportData],
    '/subjects/hold': ['dpo', placeFromForm],
    '/holds/release': ['dpo', releaseFromForm],
  },
};
