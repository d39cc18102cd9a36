import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { baseUrl } from '../../config.ts';
import { policyOf } from '../../ingest/verdict/classify.ts';
import { csvRecord } from '../../lib/text.ts';
import { fillNotices, type NoticeTexts } from '../../rights/notice.ts';
import { REGISTER_COLUMNS, type RegisteredRequest, wholeRegister } from '../../rights/register-service.ts';
import { type CommandContext, command, example, requireTenant } from '../command-service.ts';
import { checkKid, ONLY_KID_HELP } from '../input-service.ts';
import { io, print, printTable } from '../io-service.ts';

export function define(rights: Command): void {
  rights
    .command('notice')
    .description('print the notices to people, filled in from the settings of the tenant')
    .argument('[kid]', ONLY_KID_HELP, checkKid)
    .addHelpText('after', example('gpd rights notice shop > notice.md'))
    .action(command(notice));
  rights
    .command('register')
    .description('list every contest, erasure and export with its due date, newest first')
    .argument('[kid]', ONLY_KID_HELP, checkKid)
    .option('--csv', 'print CSV')
    .addHelpText('after', example('gpd rights register shop --csv > register.csv'))
    .action(command(register));
}

const TEXTS = new URL('../../../views/notice.en.json', import.meta.url);

async function notice(
  { config, tenant: tenantOf, resolveKid }: CommandContext,
  kidArgument: string | undefined,
): Promise<void> {
  const kid = await resolveKid(kidArgument);
  const tenant = await tenantOf(kid);
  const texts = JSON.parse(readFileSync(TEXTS, 'utf8')) as NoticeTexts;
  const notices = fillNotices(texts, tenant, policyOf(tenant.policy), baseUrl(config));
  print({ kid, notices }, () => notices.flatMap(({ title, text }) => [`## ${title}`, '', ...text, '']));
}

async function register(
  { open, resolveKid }: CommandContext,
  kidArgument: string | undefined,
  options: { readonly csv?: boolean },
): Promise<void> {
  const kid = await resolveKid(kidArgument);
  const { database } = await open();
  const tenant = await requireTenant(database, kid);
  const all: RegisteredRequest[] = [];
  for await (const page of wholeRegister(database, tenant)) all.push(...page);
  if (options.csv === true) {
    const rows = all.map((one) => csvRecord(REGISTER_COLUMNS.map((name) => one[name])));
    io().stdout.write([csvRecord(REGISTER_COLUMNS), ...rows].join(''));
    return;
  }
  printTable(all, all, 'no requests', {
    KIND: 'kind',
    NUMBER: 'number',
    RECEIVED: ({ receivedAt }) => receivedAt.slice(0, 10),
    DUE: ({ dueAt, extendedTo }) => (extendedTo ?? dueAt).slice(0, 10),
    STATE: 'state',
    DONE: ({ doneAt }) => doneAt?.slice(0, 10) ?? '',
    'ASKED BY': 'askedBy',
  });
}
