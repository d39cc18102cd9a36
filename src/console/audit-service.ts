import type { AuditFilter, AuditRow } from '../audit/audit.ts';
import { listAudit, recordAudit } from '../audit/store.ts';
import type { Database } from '../db/db.ts';
import type { Clock } from '../lib/clock.ts';
import type { Staff } from './ports.ts';
import type { AuditPort } from './ports-dpo.ts';

/** Reading the audit log; that it was exported is in it. */

const PAGE = 1000;

export function makeAuditPort(database: Database, clock: Clock): AuditPort {
  async function* pages(staff: Staff, filter: AuditFilter): AsyncGenerator<readonly AuditRow[]> {
    for (let before: number | undefined; ; ) {
      const rows = await listAudit(database, staff.kid, { ...filter, before }, PAGE);
      if (rows.length > 0) yield rows;
      if (rows.length < PAGE) return;
      before = rows.at(-1)?.seq;
    }
  }
  return {
    list: (staff, filter, limit) => listAudit(database, staff.kid, filter, limit),
    async exportAll(staff, filter) {
      const { kid, role, ref } = staff;
      const { action = null, from = null, to = null } = filter;
      const detail = { action, from, to };
      const event = { kid, at: clock(), actor: { role, ref }, object: null, detail };
      await recordAudit(database, { ...event, action: 'audit.exported' });
      return pages(staff, filter);
    },
  };
}
