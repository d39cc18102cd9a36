import type { Database } from '../db/engine.ts';
import { iso, isoTime } from '../lib/clock.ts';
import { pagesBy } from '../lib/collections.ts';
import type { RightsProfile } from '../tenants/settings.ts';
import { acknowledgeBy, PERIODS } from './contests/period.ts';
import { type RegisterQuery, type RegisterRow, registerPage } from './register-store.ts';

/**
 * The register of people's requests with their due dates, under the law of the tenant; for the console and
 * the command line.
 */

interface Tenant {
  readonly kid: string;
  readonly settings: { readonly 'rights.profile': RightsProfile };
}

const PAGE = 500;

function requestOf(row: RegisterRow, profile: RightsProfile) {
  const { kind, number, at, due_at: dueAt, extended_from: firstDueAt, done_at: doneAt } = row;
  return {
    kind,
    number,
    receivedAt: isoTime(at),
    dueAt: isoTime(
      kind === 'complaint' ? acknowledgeBy(at) : (firstDueAt ?? dueAt ?? PERIODS[profile].dueAt(at)),
    ),
    extendedTo: firstDueAt === null ? null : iso(dueAt),
    state: row.state,
    doneAt: iso(doneAt),
    askedBy: row.asked_by,
    pausedFrom: iso(row.paused_from),
    pausedTo: iso(row.paused_to),
    acknowledgedAt: iso(row.acknowledged_at),
  };
}

export type RegisteredRequest = ReturnType<typeof requestOf>;

export const REGISTER_COLUMNS = [
  'kind',
  'number',
  'receivedAt',
  'dueAt',
  'extendedTo',
  'state',
  'doneAt',
  'askedBy',
  'pausedFrom',
  'pausedTo',
  'acknowledgedAt',
] as const satisfies readonly (keyof RegisteredRequest)[];

/** The newest first; one row per person and day that they viewed or exported their own data. */
export async function readRegister(database: Database, { kid, settings }: Tenant, query: RegisterQuery) {
  const rows = await registerPage(database, kid, query, true);
  return rows.map((row) => ({ ...requestOf(row, settings['rights.profile']), times: Number(row.times) }));
}

/** Yields all requests, one page at a time. */
export async function* wholeRegister(database: Database, { kid, settings }: Tenant) {
  const readPage = (after: RegisterRow | undefined) =>
    registerPage(database, kid, { cursor: after ?? null, limit: PAGE });
  for await (const rows of pagesBy(PAGE, readPage))
    yield rows.map((row) => requestOf(row, settings['rights.profile']));
}
