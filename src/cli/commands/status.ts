import type { Command } from 'commander';
import { parseUrl } from '../../lib/text.ts';
import type { ServerStatus } from '../../ops/status-service.ts';
import { VERSION } from '../../version.ts';
import { type CommandContext, command, example } from '../command-service.ts';
import { alignColumns, EXIT, io, misused, print } from '../io-service.ts';

export function define(status: Command): void {
  status
    .option('--url <url>', 'the running server, if it is not the one in this configuration')
    .addHelpText('after', example('gpd status --url http://127.0.0.1:8080'))
    .action(command(showStatus));
}

const n = (count: number): string => count.toLocaleString('en');

function serverLine({ server }: ServerStatus): string {
  if (!server.running) return `nothing answers at ${server.url}: ${server.problem}`;
  return server.ready
    ? `gpd ${server.version} at ${server.url}, ready`
    : `not ready: ${server.notReady.join('; ')}`;
}

function lines(status: ServerStatus): string[] {
  const { database, decisions, webhooks } = status;
  const classes = Object.entries(decisions.byClass).map(([name, count]) => `${n(count)} ${name}`);
  const kind = database.kind === 'sqlite' ? 'SQLite' : 'PostgreSQL';
  return alignColumns([
    ['server', serverLine(status)],
    [
      'database',
      `${kind}, ${n(Math.round(database.bytes / 1e6))} MB, write-ahead log ${n(Math.round(database.walBytes / 1e6))} MB`,
    ],
    ['last backup', database.lastBackupAt ?? 'never'],
    ['tenants', n(status.tenants)],
    [
      'decisions',
      `${n(decisions.lastMinute)} in a minute, ${n(decisions.lastHour)} in an hour, about ${n(decisions.total)} kept`,
    ],
    ['last 24 h', classes.length > 0 ? classes.join(', ') : 'none'],
    ['logs', `${n(status.ledgerEntries)} entries`],
    ['webhooks', `${n(webhooks.waiting)} waiting, ${n(webhooks.failed)} abandoned`],
    ['contests', `${n(status.overdueContests)} overdue`],
    ['erasures', `${n(status.incompleteErasures)} incomplete`],
  ]);
}

export function checkUrl(url: string | undefined): string | undefined {
  if (url === undefined) return undefined;
  if (/^https?:$/.test(parseUrl(url)?.protocol ?? '')) return url;
  throw misused(`--url ${url}: must be an http or https address`);
}

async function showStatus({ config, open }: CommandContext, options: { readonly url?: string }) {
  const url = checkUrl(options.url);
  const { readStatus } = await import('../../ops/status-service.ts');
  const store = await open();
  const origin = url === undefined ? undefined : new URL(url).origin;
  const found = await readStatus(store, config, { version: VERSION, now: Date.now(), url: origin });
  print(found, () => lines(found));
  if (!found.server.running) io().exitCode = EXIT.notFound;
}
