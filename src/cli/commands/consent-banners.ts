import type { Command } from 'commander';
import { listBanners } from '../../consent/banner-store.ts';
import { isoTime } from '../../lib/clock.ts';
import { makeTenantStore } from '../../tenants/tenant-store.ts';
import { print, table } from '../output.ts';
import { noSuchTenant, withStore } from '../run.ts';

/** What people were shown, to be held against `banner.published` in the log. */
async function banners(kid: string): Promise<void> {
  await withStore(async ({ database }) => {
    if (!(await makeTenantStore(database).get(kid))) throw noSuchTenant(kid);
    const shown = (await listBanners(database, kid)).map(({ publishedAt, ...banner }) => ({
      ...banner,
      publishedAt: isoTime(publishedAt),
    }));
    print(shown, () =>
      table([
        ['ENTRY', 'SINCE', 'TEXTS', 'SCRIPT'],
        ...shown.map(({ seq, publishedAt, textsSha256, scriptSha256 }) => [
          String(seq),
          publishedAt.slice(0, 19),
          textsSha256.slice(0, 16),
          scriptSha256.slice(0, 16),
        ]),
      ]),
    );
  });
}

export function registerConsentBanners(consent: Command): void {
  consent
    .command('banners <kid>')
    .description('what the banner showed and since when; --json has the texts')
    .action(banners);
}
