import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AUDIT_ACTIONS, type AuditFilter, type AuditRow } from '../audit/audit.ts';
import type { ActorRole } from '../lib/act.ts';
import { DAY, isoTime } from '../lib/clock.ts';
import { REGISTER_COLUMNS, readRegister, wholeRegister } from '../rights/register-service.ts';
import type { RegisterCursor } from '../rights/register-store.ts';
import { type Context, requireTenant } from './context.ts';
import { exportAudit, readAudit } from './insight-service.ts';
import type { PageTable, Posted, Visit } from './session-guard.ts';
import { csvLine } from './text.ts';

/** The audit log: who did what, by keyed reference, with filters in the address and a CSV of the same. */

const PAGE = 50;
const ROLES: readonly ActorRole[] = ['subject', 'reviewer', 'dpo', 'operator', 'system'];
const REFERENCE = /^[\w-]{43}$/;

/** A day in UTC, as the field of a form gives it. */
function dayOf(value: unknown): number | undefined {
  const at = typeof value === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
}

const reference = (value: unknown): string | undefined =>
  typeof value === 'string' && REFERENCE.test(value) ? value : undefined;

type Fields = Readonly<Record<string, unknown>>;

function readFilter(query: Fields): AuditFilter {
  const to = dayOf(query['to']);
  const page = query['before'];
  const before = /^\d{1,15}$/.exec(typeof page === 'string' ? page : '')?.[0];
  return {
    action: AUDIT_ACTIONS.find((name) => name === query['action']),
    role: ROLES.find((name) => name === query['role']),
    actor: reference(query['actor']),
    object: reference(query['object']),
    from: dayOf(query['from']),
    // The day itself is meant too.
    to: to === undefined ? undefined : to + DAY,
    before: before === undefined ? undefined : Number(before),
  };
}

/** What the form shows again, and the links carry. */
function spell(filter: AuditFilter): Record<string, string> {
  const { action = '', role = '', actor = '', object = '', from, to } = filter;
  const day = (at: number | undefined): string => (at === undefined ? '' : isoTime(at).slice(0, 10));
  return { action, role, actor, object, from: day(from), to: day(to === undefined ? undefined : to - DAY) };
}

function linkTo(path: string, filter: AuditFilter, before: number | null): string {
  const query = new URLSearchParams(Object.entries(spell(filter)).filter(([, value]) => value !== ''));
  if (before !== null) query.set('before', String(before));
  const text = query.toString();
  return text === '' ? path : `${path}?${text}`;
}

async function* csv(pages: AsyncIterable<readonly AuditRow[]>): AsyncGenerator<string> {
  yield csvLine(['seq', 'at', 'role', 'actor', 'action', 'object', 'detail']);
  for await (const page of pages) {
    for (const { seq, at, role, actor, action, object, detail } of page) {
      yield csvLine([seq, isoTime(at), role, actor, action, object, JSON.stringify(detail)]);
    }
  }
}

async function showAudit(context: Context, { request, response, staff }: Visit): Promise<void> {
  const filter = readFilter(request.query);
  const rows = await readAudit(context, staff, filter, PAGE + 1);
  const shown = rows.slice(0, PAGE);
  const last = shown.at(-1);
  context.render(response, 'audit', {
    here: 'audit',
    rows: shown,
    wanted: spell(filter),
    actions: AUDIT_ACTIONS,
    roles: ROLES,
    first: filter.before === undefined ? null : linkTo('/console/audit', filter, null),
    next: rows.length > PAGE && last ? linkTo('/console/audit', filter, last.seq) : null,
  });
}

async function sendCsv({ response, staff }: Visit, name: string, lines: AsyncIterable<string>) {
  response.set({
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': `attachment; filename="${name}-${staff.kid}.csv"`,
    'cache-control': 'no-store',
  });
  await pipeline(Readable.from(lines), response);
}

async function sendAudit(context: Context, posted: Posted): Promise<void> {
  const { before: _page, ...filter } = readFilter(Object.fromEntries(posted.form));
  await sendCsv(posted, 'audit', csv(await exportAudit(context, posted.staff, filter)));
}

/** The register of all requests: contests, erasures and exports, with their due dates, and the same as CSV. */

function readCursor(value: unknown): RegisterCursor | null {
  const [, at = '', number = ''] =
    /^(\d{1,15})~([\w ]{1,40})$/.exec(typeof value === 'string' ? value : '') ?? [];
  return number === '' ? null : { at: Number(at), number };
}

async function showRegister(context: Context, visit: Visit): Promise<void> {
  const { database, render, tenantOf } = context;
  const after = readCursor(visit.request.query['after']);
  const { requests, next } = await readRegister(
    database,
    requireTenant(tenantOf, visit.staff.kid),
    after,
    PAGE,
  );
  const query = next && new URLSearchParams({ after: `${next.at}~${next.number}` });
  render(visit.response, 'register', {
    here: 'register',
    requests,
    first: after === null ? null : '/console/register',
    next: query && `/console/register?${query.toString()}`,
  });
}

async function* registerCsv({ database, tenantOf }: Context, { staff }: Visit): AsyncGenerator<string> {
  yield csvLine(REGISTER_COLUMNS);
  for await (const page of wholeRegister(database, requireTenant(tenantOf, staff.kid)))
    for (const one of page) yield csvLine(REGISTER_COLUMNS.map((name) => one[name]));
}

export const auditPages: PageTable = {
  pages: {
    '/audit': ['dpo', showAudit],
    '/register': ['dpo', showRegister],
    '/register.csv': ['dpo', (context, visit) => sendCsv(visit, 'requests', registerCsv(context, visit))],
  },
  // A form and not a link: it leaves a row in the log, and the row is this person's.
  forms: { '/audit/export': ['dpo', sendAudit] },
};
