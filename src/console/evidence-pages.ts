import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { DAY, isoTime } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import {
  BadEvidenceRequest,
  type EvidenceRequest,
  evidenceFileName,
  readEvidenceRequest,
} from '../rights/evidence/period.ts';
import { actorOf } from './context-service.ts';
import { type Form, readField } from './form.ts';
import type { ConsoleVisit, FormVisit, PageTable } from './session-guard-service.ts';

/** The page on which a dpo makes a file of evidence (contract-2 section 23). Ids are in the form alone. */

const MONTH = 30 * DAY;

const dayOf = (at: number): string => isoTime(at).slice(0, 10);

/** @param problem the field that is wrong, with its sentence */
function show(
  { context, response, now }: ConsoleVisit,
  form: Form | null,
  problem: { readonly field: string; readonly text: string } | null,
  status: number,
): void {
  const typed = (name: string, initial: string): string => form?.get(name) ?? initial;
  const values = {
    from: typed('from', dayOf(now - MONTH)),
    to: typed('to', dayOf(now + DAY)),
    kind: typed('kind', 'all'),
    id: typed('id', ''),
  };
  context.render(response, 'evidence', { here: 'evidence', values, problem }, status);
}

/** @throws {BadEvidenceRequest} */
function requestOf(form: Form): EvidenceRequest {
  const kind = form.get('kind') ?? 'all';
  const period = { from: form.get('from'), to: form.get('to') };
  if (kind === 'all') return readEvidenceRequest(period);
  const id = readField(form, 'id');
  if (id === null || (kind !== 'principal' && kind !== 'request'))
    throw new BadEvidenceRequest('id', 'is missing, or is not an id');
  return readEvidenceRequest({ ...period, [kind]: id });
}

async function send(visit: FormVisit): Promise<void> {
  const { context, staff, form, response } = visit;
  try {
    const request = requestOf(form);
    await context.readWhole(staff, async () => {
      const file = await context.evidence.spool(staff.kid, request, actorOf(staff));
      response.set({
        'content-type': 'application/zip',
        'content-disposition': `attachment; filename="${evidenceFileName(staff.kid, request)}"`,
        'content-length': String(file.size),
        'cache-control': 'no-store',
      });
      try {
        await pipeline(Readable.from(file.bytes), response);
      } finally {
        await file.close();
      }
    });
  } catch (error) {
    if (error instanceof BadEvidenceRequest)
      show(visit, form, { field: error.field, text: error.message }, 400);
    else if (error instanceof Refusal && error.code === 'not-found')
      show(visit, form, { field: 'id', text: 'is not known in this tenant' }, 404);
    else throw error;
  }
}

export const evidencePages: PageTable = {
  pages: { '/evidence': ['dpo', (visit) => show(visit, null, null, 200)] },
  forms: { '/evidence': ['dpo', send] },
};
