import type { Database } from '../db/db.ts';
import { pagesBy } from '../lib/chunks.ts';
import { iso, isoTime } from '../lib/clock.ts';
import { orElse } from '../lib/or-else.ts';
import { storedErasureSchema } from '../schema/rights.ts';
import type { RightsProfile } from '../tenants/settings.ts';
import { PERIODS } from './contests/due.ts';
import { type RegisterCursor, type RegisterRow, registerPage } from './register-store.ts';

/** The register of requests with their due dates, under the law of the tenant. */

interface Tenant {
  readonly kid: string;
  readonly settings: { readonly 'rights.profile': RightsProfile };
}

const PAGE = 500;
const endSchema = storedErasureSchema.pick({ doneAt: true });

/** One that an earlier version completed has the time of its request alone, and so has one whose row is damaged. */
function doneAtOf({ done_at: known, refs }: RegisterRow): number | null {
  if (known === null || refs === null) return known;
  return orElse(() => endSchema.parse(JSON.parse(refs)).doneAt, undefined) ?? known;
}

function requestOf(row: RegisterRow, profile: RightsProfile) {
  const { kind, number, at, due_at: due, extended_from: first } = row;
  return {
    kind,
    number,
    receivedAt: isoTime(at),
    dueAt: isoTime(first ?? due ?? PERIODS[profile].dueAt(at)),
    extendedTo: first === null ? null : iso(due),
    state: row.state,
    doneAt: iso(doneAtOf(row)),
    askedBy: row.asked_by,
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
] as const satisfies readonly (keyof RegisteredRequest)[];

/** The newest first. */
export async function readRegister(
  database: Database,
  { kid, settings }: Tenant,
  after: RegisterCursor | null,
  limit: number,
) {
  const rows = await registerPage(database, kid, after, limit + 1);
  const shown = rows.slice(0, limit);
  return {
    requests: shown.map((row) => requestOf(row, settings['rights.profile'])),
    /** Where the next page begins; null on the last one. */
    next: rows.length > limit ? (shown.at(-1) ?? null) : null,
  };
}

/** All of it, a page at a time. */
export async function* wholeRegister(database: Database, { kid, settings }: Tenant) {
  const read = (after: RegisterRow | undefined) => registerPage(database, kid, after ?? null, PAGE);
  for await (const rows of pagesBy(PAGE, read))
    yield rows.map((row) => requestOf(row, settings['rights.profile']));
}
