import { readFileSync } from 'node:fs';
import { baseUrl } from '../../config.ts';
import { policyOf } from '../../ingest/verdict/policy.ts';
import { csvRecord } from '../../lib/text.ts';
import { fillNotices, type NoticeTexts } from '../../rights/notice.ts';
import { REGISTER_COLUMNS, type RegisteredRequest, wholeRegister } from '../../rights/register-service.ts';
import { command } from '../command.ts';
import type { Actions } from '../define.ts';
import { io } from '../io.ts';
import { print, printTable } from '../output.ts';
import { requireTenant } from '../run.ts';

const TEXTS = new URL('../../../views/notice.en.json', import.meta.url);

const notice = command(async ({ config, tenant: tenantOf }, kid: string) => {
  const tenant = await tenantOf(kid);
  const texts = JSON.parse(readFileSync(TEXTS, 'utf8')) as NoticeTexts;
  const notices = fillNotices(texts, tenant, policyOf(tenant.policy), baseUrl(config));
  print({ kid, notices }, () => notices.flatMap(({ title, text }) => [`## ${title}`, '', ...text, '']));
});

const register = command(async ({ database }, kid: string, options: { readonly csv?: boolean }) => {
  const tenant = await requireTenant(database, kid);
  const all: RegisteredRequest[] = [];
  for await (const page of wholeRegister(database, tenant)) all.push(...page);
  if (options.csv === true) {
    const rows = all.map((one) => csvRecord(REGISTER_COLUMNS.map((name) => one[name])));
    io().stdout.write([csvRecord(REGISTER_COLUMNS), ...rows].join(''));
    return;
  }
  if (all.length === 0) return print(all, () => ['no requests']);
  printTable(all, all, {
    KIND: 'kind',
    NUMBER: 'number',
    RECEIVED: ({ receivedAt }) => receivedAt.slice(0, 10),
    DUE: ({ dueAt, extendedTo }) => (extendedTo ?? dueAt).slice(0, 10),
    STATE: 'state',
    DONE: ({ doneAt }) => doneAt?.slice(0, 10) ?? '',
    'ASKED BY': 'askedBy',
  });
});

export const ACTIONS: Actions = { notice, register };
