import type { Command } from 'commander';
import { listBanners as readBanners } from '../../consent/banner-store.ts';
import { stateMacs } from '../../consent/state-mac-store.ts';
import { removePurpose as deletePurpose, savePurposes } from '../../consent/terms-store.ts';
import { isoTime } from '../../lib/clock.ts';
import { purposeIdSchema } from '../../schema/bundle.ts';
import { GPC_POLICIES } from '../../schema/gpc.ts';
import { DEFAULT_TTL_DAYS, DEVICE_IDENTIFICATION, type Purpose } from '../../tenants/purposes.ts';
import { createTenantStore } from '../../tenants/tenant-store.ts';
import {
  addCommand,
  type CommandContext,
  checkInteger,
  checkOneOf,
  checkValue,
  type Flags,
  noSuchTenant,
  YES,
} from '../command-service.ts';
import {
  confirmOnTerminal,
  conflict,
  type DestructiveFlags,
  notFound,
  print,
  printTable,
} from '../io-service.ts';
import { defineDecisions } from './consent-decisions.ts';
import { defineImport } from './consent-import.ts';
import { defineLedger } from './consent-ledger.ts';

export function define(consent: Command): void {
  const purposes = consent.command('purposes').description('what people are asked to consent to');
  addCommand(purposes, 'list [kid]', listPurposes, {
    about: 'list the purposes of a tenant',
    example: 'gpd consent purposes list shop',
  });
  addCommand(purposes, 'set <kid>', setPurpose, {
    about: 'define or change a purpose',
    example: "gpd consent purposes set shop newsletter --title 'Our newsletter' --ttl-days 365",
  })
    .argument('<id>', 'id of the purpose')
    .requiredOption('--title <title>', 'what people read')
    .option('--description <text>', 'what it means for them')
    .option('--lawful-basis <basis>', 'the lawful basis, for instance consent')
    .option('--gpc <policy>', 'what a Global Privacy Control signal does: opt-out (default), ask or ignore')
    .option('--ttl-days <days>', 'how long a grant lasts')
    .option('--banner', 'ask for it in the banner (default)')
    .option('--no-banner', 'never ask for it in the banner')
    .option('--not-material', 'ask nobody again: the change does not alter what people agreed to');
  addCommand(purposes, 'remove <kid>', removePurpose, {
    about: 'ask nobody for a purpose any more; a check of it answers unknown-purpose',
    example: 'gpd consent purposes remove shop newsletter',
  })
    .argument('<id>', 'id of the purpose')
    .option(...YES)
    .option('--dry-run', 'show what would be removed; change nothing');
  defineDecisions(consent);
  defineImport(consent);
  defineLedger(consent);
  addCommand(consent, 'banners [kid]', listBanners, {
    about: 'show what the banner displayed, and since when; --json has the texts',
    example: 'gpd consent banners shop --json',
  });
}

type PurposeFlags = Flags<'description' | 'lawfulBasis' | 'gpc' | 'ttlDays', 'banner'> & {
  readonly title: string;
  readonly notMaterial?: boolean;
};

function checkPurpose(id: string, flags: PurposeFlags, before: Purpose | undefined): Purpose {
  const gpcText = flags.gpc ?? before?.gpc ?? 'opt-out';
  const gpc = checkOneOf('--gpc', gpcText, GPC_POLICIES, 'opt-out, ask or ignore');
  const days = flags.ttlDays ?? before?.ttlDays ?? DEFAULT_TTL_DAYS;
  const ttlDays = checkInteger('--ttl-days', days, [1, 36_500], 'a whole number of days, at least 1');
  return {
    id: checkValue(purposeIdSchema, id, `purpose ${JSON.stringify(id)}: `),
    title: flags.title,
    description: flags.description ?? before?.description ?? '',
    lawfulBasis: flags.lawfulBasis ?? before?.lawfulBasis ?? 'consent',
    gpc,
    ttlDays,
    banner: flags.banner ?? before?.banner ?? true,
  };
}

async function setPurpose({ by, open }: CommandContext, kid: string, id: string, flags: PurposeFlags) {
  const store = await open();
  const { database } = store;
  const before = (await createTenantStore(database).purposes(kid)).find((purpose) => purpose.id === id);
  const purpose = checkPurpose(id, flags, before);
  const terms = (await stateMacs(store)).get(kid);
  const change = { ...purpose, material: flags.notMaterial !== true };
  if (!terms || !(await savePurposes(database, terms, [change], await by(kid)))) throw noSuchTenant(kid);
  print({ kid, ...purpose }, () => [`${kid}: purpose ${purpose.id} saved (gpc ${purpose.gpc})`]);
}

async function listPurposes({ stored }: CommandContext, kidArgument?: string): Promise<void> {
  const { database, kid } = await stored(kidArgument);
  const purposes = await createTenantStore(database).purposes(kid);
  printTable(purposes, 'no purposes; `gpd consent purposes set` defines one', {
    PURPOSE: 'id',
    TITLE: 'title',
    GPC: 'gpc',
    DAYS: 'ttlDays',
    BANNER: ({ banner }) => (banner ? 'yes' : 'no'),
  });
}

async function removePurpose(
  { stored, by }: CommandContext,
  kid: string,
  id: string,
  options: DestructiveFlags,
): Promise<void> {
  if (id === DEVICE_IDENTIFICATION) throw conflict(`${id} cannot be removed: gpd asks for it itself`);
  const store = await stored(kid);
  const { database } = store;
  const purpose = (await createTenantStore(database).purposes(kid)).find((candidate) => candidate.id === id);
  if (!purpose)
    throw notFound(`${kid} has no purpose ${id}; \`gpd consent purposes list ${kid}\` shows them`);
  if (options.dryRun === true)
    return print({ kid, id, dryRun: true, title: purpose.title }, () => [
      `would be removed: ${id} (${purpose.title}) of ${kid}`,
    ]);
  await confirmOnTerminal(options, `Removing ${id} of ${kid}: from now on no check of it is allowed`);
  const terms = (await stateMacs(store)).get(kid);
  if (!terms || !(await deletePurpose(database, terms, id, await by(kid)))) throw noSuchTenant(kid);
  print({ kid, id, removed: true }, () => [
    `${kid}: purpose ${id} is removed; the log keeps what people chose`,
  ]);
}

/**
 * Lists the hashes of the texts and scripts that people were shown, to compare with `banner.published` in the
 * log.
 */
async function listBanners({ stored }: CommandContext, kidArgument?: string): Promise<void> {
  const { database, kid } = await stored(kidArgument);
  const shown = (await readBanners(database, kid)).map(({ publishedAt, ...banner }) => ({
    ...banner,
    publishedAt: isoTime(publishedAt),
  }));
  printTable(shown, 'no banner was shown yet; it needs a publishable key: `gpd apikeys create`', {
    ENTRY: 'seq',
    SINCE: ({ publishedAt }) => publishedAt.slice(0, 19),
    TEXTS: ({ textsSha256 }) => textsSha256.slice(0, 16),
    SCRIPT: ({ scriptSha256 }) => scriptSha256.slice(0, 16),
  });
}
