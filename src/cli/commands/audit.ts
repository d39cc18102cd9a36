import type { Command } from 'commander';
import { AUDIT_ACTIONS, listAudit } from '../../audit/audit-store.ts';
import { isoTime } from '../../lib/clock.ts';
import {
  type CommandContext,
  checkInteger,
  checkOneOf,
  command,
  example,
  type Flags,
  ONLY_KID,
  parseDuration,
} from '../command-service.ts';
import { misused, printTable } from '../io-service.ts';

export function define(audit: Command): void {
  audit
    .argument(...ONLY_KID)
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
  const from = checkSince(options.since);
  const action =
    options.action === undefined ? undefined : checkOneOf('--action', options.action, AUDIT_ACTIONS);
  const limit = checkInteger('--limit', options.limit, [1, MAX_LIMIT], `a number from 1 to ${MAX_LIMIT}`);
  const { database } = await open();
  const kid = await resolveKid(kidArgument);
  await operator(kid);
  const rows = (await listAudit(database, kid, { from, action, actor: options.actor }, limit)).map((row) => ({
    ...row,
    at: isoTime(row.at),
  }));
  printTable(rows, 'no rows; `gpd audit --help` shows the filters', {
    AT: 'at',
    ROLE: 'role',
    ACTION: 'action',
    ACTOR: 'actor',
    DETAIL: (row) => JSON.stringify(row.detail),
  });
}
