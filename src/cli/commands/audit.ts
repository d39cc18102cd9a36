import { AUDIT_ACTIONS, type AuditAction } from '../../audit/audit.ts';
import { listAudit } from '../../audit/store.ts';
import { isoTime } from '../../lib/clock.ts';
import { withContext } from '../command.ts';
import type { Actions } from '../define.ts';
import { printTable } from '../output.ts';
import { checkOneOf, checkWhole, type Flags } from '../run.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 10_000;

function checkAction(text: string | undefined): AuditAction | undefined {
  if (text === undefined) return undefined;
  return checkOneOf(AUDIT_ACTIONS, text, `--action ${text}: must be one of ${AUDIT_ACTIONS.join(', ')}`);
}

async function list(kid: string, options: Flags<'action' | 'limit'>): Promise<void> {
  const action = checkAction(options.action);
  const otherwise = `--limit must be a number from 1 to ${MAX_LIMIT}`;
  const limit = checkWhole(options.limit ?? DEFAULT_LIMIT, [1, MAX_LIMIT], otherwise);
  await withContext(async ({ database, operator }) => {
    await operator(kid);
    const rows = (await listAudit(database, kid, { action }, limit)).map((row) => ({
      ...row,
      at: isoTime(row.at),
    }));
    printTable(rows, rows, {
      AT: 'at',
      ROLE: 'role',
      ACTION: 'action',
      ACTOR: (row) => row.actor.slice(0, 10),
      DETAIL: (row) => JSON.stringify(row.detail),
    });
  });
}

export const ACTIONS: Actions = { '': [list, {}, { limit: String(DEFAULT_LIMIT) }] };
