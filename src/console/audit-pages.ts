import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { AuditAction, AuditFilter, AuditRow } from '../audit/audit-store.ts';
import type { ActorRole } from '../lib/act.ts';
import { DAY, isoTime } from '../lib/clock.ts';
import { csvRecord } from '../lib/text.ts';
import { REGISTER_COLUMNS, readRegister, wholeRegister } from '../rights/register-service.ts';
import type { RegisterQuery } from '../rights/register-store.ts';
import { requireTenant } from './context-service.ts';
import { buildAddress, matchParameter, parseDay } from './form.ts';
import { exportAudit, readAudit } from './insight-service.ts';
import { readTurn, turnPage } from './paging.ts';
import type { ConsoleVisit, FormVisit, PageTable } from './session-guard-service.ts';
import { WORDS } from './words.ts';

/**
 * The audit log and the register of requests, as pages for a dpo and as CSV
 * files. Actors and objects are keyed references; the filters are in the address.
 */

const PAGE = 50;
const ACTIONS = Object.keys(WORDS.audit) as readonly AuditAction[];
const ROLES: readonly ActorRole[] = ['subject', 'reviewer', 'dpo', 'operator', 'system'];
const KINDS = ['contest', 'erasure', 'export'] as const;
const STATES = ['open', 'done'] as const;
const REFERENCE = /^[\w-]{43}$/;

const readReference = (value: unknown): string | undefined => matchParameter(value, REFERENCE)[0];

function readFilter(query: Readonly<Record<string, unknown>>): AuditFilter {
  const to = parseDay(query['to']);
  const [before] = matchParameter(query['before'], /^\d{1,15}$/);
  return {
    action: ACTIONS.find((name) => name === query['action']),
    role: ROLES.find((name) => name === query['role']),
    actor: readReference(query['actor']),
    object: readReference(query['object']),
    from: parseDay(query['from']),
    // The last day of the range is included.
    to: to === undefined ? undefined : to + DAY,
    before: before === undefined ? undefined : Number(before),
  };
}

/** Turns a filter into parameters, for the fields of the form and for links. */
function toParameters(filter: AuditFilter): Record<string, string> {
  const { action = '', role = '', actor = '', object = '', from, to } = filter;
  const day = (at: number | undefined): string => (at === undefined ? '' : isoTime(at).slice(0, 10));
  return { action, role, actor, object, from: day(from), to: day(to === undefined ? undefined : to - DAY) };
}

const linkTo = (filter: AuditFilter, before = ''): string =>
  buildAddress('/console/audit', { ...toParameters(filter), before });

async function* writeAuditCsv(pages: AsyncIterable<readonly AuditRow[]>): AsyncGenerator<string> {
  yield csvRecord(['seq', 'at', 'role', 'actor', 'action', 'object', 'detail']);
  for await (const page of pages) {
    for (const { seq, at, role, actor, action, object, detail } of page) {
      yield csvRecord([seq, isoTime(at), role, actor, action, object, JSON.stringify(detail)]);
    }
  }
}

async function showAudit({ context, request, response, staff }: ConsoleVisit): Promise<void> {
  const filter = readFilter(request.query);
  const rows = await readAudit(context, staff, filter, PAGE + 1);
  const shownRows = rows.slice(0, PAGE);
  const last = shownRows.at(-1);
  context.render(response, 'audit', {
    here: 'audit',
    rows: shownRows,
    wanted: toParameters(filter),
    actions: ACTIONS,
    roles: ROLES,
    first: filter.before === undefined ? null : linkTo(filter),
    next: rows.length > PAGE && last ? linkTo(filter, String(last.seq)) : null,
  });
}

async function sendCsv({ response, staff }: ConsoleVisit, name: string, lines: AsyncIterable<string>) {
  response.set({
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': `attachment; filename="${name}-${staff.kid}.csv"`,
    'cache-control': 'no-store',
  });
  await pipeline(Readable.from(lines), response);
}

async function sendAudit(visit: FormVisit): Promise<void> {
  const { before: _page, ...filter } = readFilter(Object.fromEntries(visit.form));
  await sendCsv(visit, 'audit', writeAuditCsv(await exportAudit(visit.context, visit.staff, filter)));
}

function readCursor(value: unknown): RegisterQuery['cursor'] {
  const [, at = '', number = ''] = matchParameter(value, /^(\d{1,15})~([\w ]{1,40})$/);
  return number === '' ? null : { at: Number(at), number };
}

async function showRegister({ context, request, response, staff }: ConsoleVisit): Promise<void> {
  const { query } = request;
  const turn = readTurn(query, readCursor);
  const kind = KINDS.find((name) => name === query['kind']);
  const state = STATES.find((name) => name === query['state']);
  const isOpen = state && state === 'open';
  const selection = { ...turn, kind, isOpen, limit: PAGE + 1 };
  const requests = await readRegister(context.database, requireTenant(context, staff), selection);
  const filter = { kind: kind ?? '', state: state ?? '' };
  const { shown, ...links } = turnPage(requests, PAGE, turn, {
    positionOf: ({ receivedAt, number }) => `${Date.parse(receivedAt)}~${number}`,
    linkTo: (page) => buildAddress('/console/register', { ...filter, ...page }),
  });
  context.render(response, 'register', { here: 'register', requests: shown, wanted: filter, ...links });
}

async function* writeRegisterCsv({ context, staff }: ConsoleVisit): AsyncGenerator<string> {
  yield csvRecord(REGISTER_COLUMNS);
  for await (const page of wholeRegister(context.database, requireTenant(context, staff)))
    for (const one of page) yield csvRecord(REGISTER_COLUMNS.map((name) => one[name]));
}

export const auditPages: PageTable = {
  pages: {
    '/audit': ['dpo', showAudit],
    '/register': ['dpo', showRegister],
    '/register.csv': ['dpo', (visit) => sendCsv(visit, 'requests', writeRegisterCsv(visit))],
  },
  // This is a form and not a link, because it writes an audit row in this person's name.
  forms: { '/audit/export': ['dpo', sendAudit] },
};
