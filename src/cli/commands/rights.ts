import { readFileSync } from 'node:fs';
import { baseUrl } from '../../config.ts';
import { fillNotices, type NoticeTexts } from '../../rights/notice.ts';
import type { Actions } from '../define.ts';
import { readDirectory } from '../directory.ts';
import { print } from '../output.ts';
import { noSuchTenant, withStore } from '../run.ts';

const TEXTS = new URL('../../../views/notice.en.json', import.meta.url);

async function notice(kid: string): Promise<void> {
  await withStore(async (store, config) => {
    const directory = await readDirectory(store);
    const [tenant, judge] = [directory.consentTenant(kid), directory.tenant(kid)];
    if (!tenant || !judge) throw noSuchTenant(kid);
    const texts = JSON.parse(readFileSync(TEXTS, 'utf8')) as NoticeTexts;
    const notices = fillNotices(texts, tenant, judge.policy, baseUrl(config));
    print({ kid, notices }, () => notices.flatMap(({ title, text }) => [`## ${title}`, '', ...text, '']));
  });
}

export const ACTIONS: Actions = { notice };
