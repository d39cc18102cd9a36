import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { baseUrl } from '../../config.ts';
import { policyOf } from '../../ingest/verdict/classify.ts';
import { csvRecord } from '../../lib/text.ts';
import { fillNotices, type NoticeTexts } from '../../rights/notice.ts';
import { REGISTER_COLUMNS, type RegisteredRequest, wholeRegister } from '../../rights/register-service.ts';
import { addCommand, type CommandContext } from '../command-service.ts';
import { io, print, printTable } from '../io-service.ts';

export function define(rights: Command): void {
  addCommand(rights, 'notice [kid]', notice, {
    about: 'print the notices to people, filled in from the settings of the tenant',
    example: 'gpd rights notice shop > notice.md',
  });
  addCommand(rights, 'register [kid]', register, {
    about: 'list every contest, erasure and export with its due date, newest first',
    example: 'gpd rights register shop --csv > register.csv',
  }).option('--csv', 'print CSV');
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
  { stored }: CommandContext,
  kidArgument: string | undefined,
  options: { readonly csv?: boolean },
): Promise<void> {
  const { database, tenant } = await stored(kidArgument);
  const all: RegisteredRequest[] = [];
  for await (const page of wholeRegister(database, tenant)) all.push(...page);
  if (options.csv === true) {
    const rows = all.map((one) => csvRecord(REGISTER_COLUMNS.map((name) => one[name])));
    io().stdout.write([csvRecord(REGISTER_COLUMNS), ...rows].join(''));
    return;
  }
  printTable(all, 'no requests; `gpd rights notice` prints what tells people of their rights', {
    KIND: 'kind',
    NUMBER: 'number',
    RECEIVED: ({ receivedAt }) => receivedAt.slice(0, 10),
    DUE: ({ dueAt, extendedTo }) => (extendedTo ?? dueAt).slice(0, 10),
    STATE: 'state',
    DONE: ({ doneAt }) => doneAt?.slice(0, 10) ?? '',
    'ASKED BY': 'askedBy',
  });
}
