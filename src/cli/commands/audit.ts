import type { Command } from 'commander';
import { AUDIT_ACTIONS, type AuditAction, listAudit } from '../../audit/audit-store.ts';
import { isoTime } from '../../lib/clock.ts';
import { type CommandContext, command, example } from '../command-service.ts';
import {
  checkInteger,
  checkKid,
  checkOneOf,
  type Flags,
  ONLY_KID_HELP,
  parseDuration,
} from '../input-service.ts';
import { misused, printTable } from '../io-service.ts';

export function define(audit: Command): void {
  audit
    .argument('[kid]', ONLY_KID_HELP, checkKid)
    .option(
      '--since <time>',
      'only what happened since: a date such as 2026-11-01, or how long ago, such as 7d',
    )
    .option('--action <action>', 'only this action')
    .option('--actor <ref>', 'only what this reference did')
    .option('--limit <n>', 'how many rows', '100')
    .addHelpText('after', example('gpd audit shop --since 7d --action tenant.set'))
    .action(command(listRows));
}

const MAX_LIMIT = 10_000;

function checkAction(text: string | undefined): AuditAction | undefined {
  if (text === undefined) return undefined;
  return checkOneOf(AUDIT_ACTIONS, text, `--action ${text}: must be one of ${AUDIT_ACTIONS.join(', ')}`);
}

/** @returns epoch milliseconds */
function checkSince(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ago = parseDuration(text);
  const since = ago === null ? Date.parse(text) : Date.now() - ago;
  if (!Number.isNaN(since)) return since;
  throw misused(`--since ${text}: must be a date such as 2026-11-01, or how long ago, such as 7d`);
}

async function listRows(
  { open, resolveKid, operator }: CommandContext,
  kidArgument: string | undefined,
  options: Flags<'since' | 'action' | 'actor'> & { readonly limit: string },
): Promise<void> {
  const { actor, limit: limitText } = options;
  const filter = { from: checkSince(options.since), action: checkAction(options.action), actor };
  const message = `--limit ${limitText}: must be a number from 1 to ${MAX_LIMIT}`;
  const limit = checkInteger(limitText, [1, MAX_LIMIT], message);
  const { database } = await open();
  const kid = await resolveKid(kidArgument);
  await operator(kid);
  const rows = (await listAudit(database, kid, filter, limit)).map((row) => ({
    ...row,
    at: isoTime(row.at),
  }));
  printTable(rows, rows, 'no rows', {
    AT: 'at',
    ROLE: 'role',
    ACTION: 'action',
    ACTOR: 'actor',
    DETAIL: (row) => JSON.stringify(row.detail),
  });
}
