import { listBanners } from '../../consent/banner.ts';
import { stateMacs } from '../../consent/state-mac-service.ts';
import { savePurposes } from '../../consent/terms-store.ts';
import { isoTime } from '../../lib/clock.ts';
import { purposeIdSchema } from '../../schema/bundle.ts';
import { GPC_POLICIES } from '../../schema/gpc.ts';
import { DEFAULT_TTL_DAYS, type Purpose } from '../../tenants/purposes.ts';
import { makeTenantStore } from '../../tenants/tenant-store.ts';
import { command } from '../command.ts';
import { type Actions, REQUIRED } from '../define.ts';
import { print, printTable } from '../output.ts';
import { checked, checkOneOf, checkWhole, type Flags, noSuchTenant, requireTenant } from '../run.ts';
import { DECISIONS } from './consent-decisions.ts';
import { LEDGER } from './consent-ledger.ts';

type PurposeFlags = Flags<'description' | 'lawfulBasis' | 'gpc' | 'ttlDays'> & { readonly title: string };

function checkPurpose(id: string, flags: PurposeFlags, before: Purpose | undefined): Purpose {
  const asked = flags.gpc ?? before?.gpc ?? 'opt-out';
  const gpc = checkOneOf(GPC_POLICIES, asked, '--gpc must be opt-out, ask or ignore');
  const days = flags.ttlDays ?? before?.ttlDays ?? DEFAULT_TTL_DAYS;
  const ttlDays = checkWhole(days, [1, 36_500], '--ttl-days must be a whole number of days, at least 1');
  return {
    id: checked(purposeIdSchema, id, ''),
    title: flags.title,
    description: flags.description ?? before?.description ?? '',
    lawfulBasis: flags.lawfulBasis ?? before?.lawfulBasis ?? 'consent',
    gpc,
    ttlDays,
  };
}

const set = command(async ({ store, by }, kid: string, id: string, flags: PurposeFlags) => {
  const { database } = store;
  const before = (await makeTenantStore(database).purposes(kid)).find((purpose) => purpose.id === id);
  const purpose = checkPurpose(id, flags, before);
  const terms = (await stateMacs(store)).get(kid);
  if (!terms || !(await savePurposes(database, terms, [purpose], await by(kid)))) throw noSuchTenant(kid);
  print({ kid, ...purpose }, () => [`${kid}: purpose ${purpose.id} saved (gpc ${purpose.gpc})`]);
});

const list = command(async ({ database }, kid: string) => {
  await requireTenant(database, kid);
  const purposes = await makeTenantStore(database).purposes(kid);
  printTable(purposes, purposes, { PURPOSE: 'id', TITLE: 'title', GPC: 'gpc', DAYS: 'ttlDays' });
});

/** What people were shown, to compare with `banner.published` in the log. */
const banners = command(async ({ database }, kid: string) => {
  await requireTenant(database, kid);
  const shown = (await listBanners(database, kid)).map(({ publishedAt, ...banner }) => ({
    ...banner,
    publishedAt: isoTime(publishedAt),
  }));
  printTable(shown, shown, {
    ENTRY: 'seq',
    SINCE: ({ publishedAt }) => publishedAt.slice(0, 19),
    TEXTS: ({ textsSha256 }) => textsSha256.slice(0, 16),
    SCRIPT: ({ scriptSha256 }) => scriptSha256.slice(0, 16),
  });
});

export const ACTIONS: Actions = {
  'purposes list': list,
  'purposes set': [set, { title: REQUIRED }],
  ...DECISIONS,
  ...LEDGER,
  banners,
};
