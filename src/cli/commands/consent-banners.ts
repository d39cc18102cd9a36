import type { Command } from 'commander';
import { listBanners } from '../../consent/banner-store.ts';
import { isoTime } from '../../lib/clock.ts';
import { makeTenantStore } from '../../tenants/tenant-store.ts';
import { printTable } from '../output.ts';
import { noSuchTenant, withStore } from '../run.ts';

/** What people were shown, to be held against `banner.published` in the log. */
async function banners(kid: string): Promise<void> {
  await withStore(async ({ database }) => {
    if (!(await makeTenantStore(database).get(kid))) throw noSuchTenant(kid);
    const shown = (await listBanners(database, kid)).map(({ publishedAt, ...banner }) => ({
      ...banner,
      publishedAt: isoTime(publishedAt),
    }));
    printTable(shown, shown, {
      ENTRY: ({ seq }) => seq,
      SINCE: ({ publishedAt }) => publishedAt.slice(0, 19),
      TEXTS: ({ textsSha256 }) => textsSha256.slice(0, 16),
      SCRIPT: ({ scriptSha256 }) => scriptSha256.slice(0, 16),
    });
  });
}

export function registerConsentBanners(consent: Command): void {
  consent
    .command('banners <kid>')
    .description('what the banner showed and since when; --json has the texts')
    .action(banners);
}
