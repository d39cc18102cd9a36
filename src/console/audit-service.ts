import type { AuditFilter, AuditRow } from '../audit/audit.ts';
import { listAudit, recordAudit } from '../audit/store.ts';
import { pagesBy } from '../lib/chunks.ts';
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
  return pagesBy<AuditRow>(PAGE, (last) => readAudit(context, staff, { ...filter, before: last?.seq }, PAGE));
}
