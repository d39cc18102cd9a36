import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Refusal } from '../lib/errors.ts';
import { REGISTER_COLUMNS, readRegister, wholeRegister } from '../rights/register-service.ts';
import type { RegisterCursor } from '../rights/register-store.ts';
import type { Context } from './context.ts';
import type { PageTable } from './page-table.ts';
import type { Visit } from './session-guard.ts';
import { csvLine } from './text.ts';

/** The register of all requests: contests, erasures and exports, with their due dates, and the same as CSV. */

const PAGE = 50;

function tenantFor({ tenantOf }: Context, { staff }: Visit) {
  const tenant = tenantOf(staff.kid);
  if (!tenant) throw new Refusal('not-found');
  return tenant;
}

function readCursor(value: unknown): RegisterCursor | null {
  const [, at = '', number = ''] =
    /^(\d{1,15})~([\w ]{1,40})$/.exec(typeof value === 'string' ? value : '') ?? [];
  return number === '' ? null : { at: Number(at), number };
}

async function showRegister(context: Context, visit: Visit): Promise<void> {
  const { database, render } = context;
  const after = readCursor(visit.request.query['after']);
  const { requests, next } = await readRegister(database, tenantFor(context, visit), after, PAGE);
  const query = next && new URLSearchParams({ after: `${next.at}~${next.number}` });
  render(visit.response, 'register', {
    here: 'register',
    requests,
    first: after === null ? null : '/console/register',
    next: query && `/console/register?${query.toString()}`,
  });
}

async function* csv(context: Context, visit: Visit): AsyncGenerator<string> {
  yield csvLine(REGISTER_COLUMNS);
  for await (const page of wholeRegister(context.database, tenantFor(context, visit)))
    for (const one of page) yield csvLine(REGISTER_COLUMNS.map((name) => one[name]));
}

async function sendCsv(context: Context, visit: Visit): Promise<void> {
  visit.response.set({
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': `attachment; filename="requests-${visit.staff.kid}.csv"`,
    'cache-control': 'no-store',
  });
  await pipeline(Readable.from(csv(context, visit)), visit.response);
}

export const registerPages: PageTable = {
  pages: { '/register': ['dpo', showRegister], '/register.csv': ['dpo', sendCsv] },
};
