import { AUDIT_ACTIONS, type AuditAction } from '../../audit/audit.ts';
import { listAudit } from '../../audit/store.ts';
import { isoTime } from '../../lib/clock.ts';
import type { Actions } from '../define.ts';
import { misused, printTable } from '../output.ts';
import { withRights } from '../rights-context.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 10_000;

function isAction(text: string): text is AuditAction {
  return (AUDIT_ACTIONS as readonly string[]).includes(text);
}

function checkAction(text: string | undefined): AuditAction | undefined {
  if (text === undefined || isAction(text)) return text;
  throw misused(`--action ${text}: must be one of ${AUDIT_ACTIONS.join(', ')}`);
}

function checkLimit(text: string | undefined): number {
  const limit = text === undefined ? DEFAULT_LIMIT : Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT) return limit;
  throw misused(`--limit must be a number from 1 to ${MAX_LIMIT}`);
}

async function list(
  kid: string,
  options: { readonly action?: string; readonly limit?: string },
): Promise<void> {
  const action = checkAction(options.action);
  const limit = checkLimit(options.limit);
  await withRights(async ({ store, operatorOf }) => {
    operatorOf(kid);
    const rows = (await listAudit(store.database, kid, { action }, limit)).map((row) => ({
      ...row,
      at: isoTime(row.at),
    }));
    printTable(rows, rows, {
      AT: (row) => row.at,
      ROLE: (row) => row.role,
      ACTION: (row) => row.action,
      ACTOR: (row) => row.actor.slice(0, 10),
      DETAIL: (row) => JSON.stringify(row.detail),
    });
  });
}

export const ACTIONS: Actions = { '': [list, {}, { limit: String(DEFAULT_LIMIT) }] };
