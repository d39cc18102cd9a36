import { readFileSync } from 'node:fs';
import { baseUrl } from '../../config.ts';
import { csvRecord } from '../../lib/text.ts';
import { fillNotices, type NoticeTexts } from '../../rights/notice.ts';
import { REGISTER_COLUMNS, type RegisteredRequest, wholeRegister } from '../../rights/register-service.ts';
import type { Actions } from '../define.ts';
import { readDirectory } from '../directory.ts';
import { io } from '../io.ts';
import { print, printTable } from '../output.ts';
import { noSuchTenant, onStore, requireTenant } from '../run.ts';

const TEXTS = new URL('../../../views/notice.en.json', import.meta.url);

const notice = onStore((kid: string) => async (store, config) => {
  const directory = await readDirectory(store);
  const [tenant, ingestTenant] = [directory.consentTenant(kid), directory.tenant(kid)];
  if (!tenant || !ingestTenant) throw noSuchTenant(kid);
  const texts = JSON.parse(readFileSync(TEXTS, 'utf8')) as NoticeTexts;
  const notices = fillNotices(texts, tenant, ingestTenant.policy, baseUrl(config));
  print({ kid, notices }, () => notices.flatMap(({ title, text }) => [`## ${title}`, '', ...text, '']));
});

const register = onStore((kid: string, options: { readonly csv?: boolean }) => async ({ database }) => {
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
