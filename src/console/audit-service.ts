import type { AuditFilter, AuditRow } from '../audit/audit.ts';
import { listAudit, recordAudit } from '../audit/store.ts';
import type { Context } from './context.ts';
import { actorOf, type Staff } from './staff.ts';

/** Reading the audit log; that it was exported is in it. */

const PAGE = 1000;

export function readAudit(
  { database }: Context,
  { kid }: Staff,
  filter: AuditFilter,
  limit: number,
): Promise<readonly AuditRow[]> {
  return listAudit(database, kid, filter, limit);
}

async function* pagesOf(
  { database }: Context,
  { kid }: Staff,
  filter: AuditFilter,
): AsyncGenerator<readonly AuditRow[]> {
  for (let before: number | undefined; ; ) {
    const rows = await listAudit(database, kid, { ...filter, before }, PAGE);
    if (rows.length > 0) yield rows;
    if (rows.length < PAGE) return;
    before = rows.at(-1)?.seq;
  }
}

/** Every row that fits, and one more that says that they were exported. */
export async function exportAudit(
  context: Context,
  staff: Staff,
  filter: AuditFilter,
): Promise<AsyncIterable<readonly AuditRow[]>> {
  const { action = null, from = null, to = null } = filter;
  await recordAudit(context.database, {
    kid: staff.kid,
    at: context.clock(),
    actor: actorOf(staff),
    action: 'audit.exported',
    object: null,
    detail: { action, from, to },
  });
  return pagesOf(context, staff, filter);
}
