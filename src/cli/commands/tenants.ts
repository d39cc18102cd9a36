import type { Command } from 'commander';
import { closest, distance } from 'fastest-levenshtein';
import { baseUrl, type Config } from '../../config.ts';
import { listKids } from '../../db/meta-store.ts';
import { isoTime } from '../../lib/clock.ts';
import { readHead } from '../../log/entries-store.ts';
import { listWebhooks } from '../../notify/webhooks-store.ts';
import { addTenant, type TenantRequest } from '../../ops/new-tenant-service.ts';
import { explainIssue } from '../../schema/explain-issue.ts';
import { createApiKeyStore } from '../../tenants/api-key-store.ts';
import { listSealKeys } from '../../tenants/secrets-store.ts';
import {
  describeSetting,
  isWildcard,
  originSchema,
  TENANT_SETTING_NAMES,
  type TenantSettings,
  tenantSettingsSchema,
} from '../../tenants/settings.ts';
import { createTenantStore } from '../../tenants/tenant-store.ts';
import {
  addCommand,
  type CommandContext,
  checkValue,
  collect,
  type Flags,
  noSuchTenant,
  YES,
} from '../command-service.ts';
import { alignColumns, conflict, failed, misused, print, printTable, say } from '../io-service.ts';
import { changePolicy } from './policy.ts';
import { removeTenant } from './tenant-remove.ts';

export function define(tenants: Command): void {
  addCommand(tenants, 'add <kid>', add, {
    about: 'add a tenant with one published seal key',
    example: 'gpd tenants add shop --origin https://shop.example',
  })
    .option('--origin <url>', 'an origin of its pages; repeat it for more', collect, [])
    .option('--controller <text>', 'who is responsible for the data: name and address')
    .option('--contact <text>', 'how people reach them, an e-mail address for instance');
  addCommand(tenants, 'list', list, {
    about: 'list the tenants',
    example: 'gpd tenants list',
  });
  addCommand(tenants, 'show [kid]', show, {
    about: 'show the settings of a tenant, and what it has',
    example: 'gpd tenants show shop',
  });
  addCommand(tenants, 'set <kid>', setSettings, {
    about: 'change settings',
    example: 'gpd tenants set shop retention.days=30 notice.contact=privacy@shop.example',
  })
    .argument('<key=value...>', 'settings and their values; KEY= empties a list or a text')
    .addHelpText('after', () => ['\nSettings:', ...settingLines()].join('\n'));
  addCommand(tenants, 'policy [kid]', changePolicy, {
    about: 'show the rule weights of a tenant, or change them, live or in shadow',
    example: 'gpd tenants policy shop --shadow --set policy.json',
  })
    .option('--set <file>', 'use the policy in this JSON file')
    .option('--clear', 'return to the default')
    .option('--shadow', 'change the shadow policy: its verdicts are counted, never answered');
  addCommand(tenants, 'remove <kid>', removeTenant, {
    about: 'remove a tenant and erase its data, after an export if wanted',
    example: 'gpd tenants remove shop --export ./shop-data',
  })
    .option('--export <dir>', 'write its rows as NDJSON first')
    .option('--dry-run', 'show what would be deleted; change nothing')
    .option(...YES);
}

/** @returns a line for each setting: its name, what it takes, and its default */
const settingLines = (): string[] =>
  alignColumns(
    TENANT_SETTING_NAMES.map((name) => {
      const { takes, fallback } = describeSetting(name);
      return [`  ${name}`, takes, `(default: ${fallback === '' ? 'empty' : fallback})`];
    }),
  );

/** @param field begins the error: the option or the setting, up to its value */
export function checkOrigins(origins: readonly string[], field = '--origin '): string[] {
  return origins.map((text) => {
    const origin = checkValue(originSchema, text, `${field}${text}: `);
    if (!isWildcard(origin)) return origin;
    throw misused(`${field}${text}: a wildcard matches no page; name each origin`);
  });
}

export type NewTenantFlags = Flags<'controller' | 'contact'> & { readonly origin: string[] };

/**
 * Settings that are easy now and hard later: a log keeps its name, and people read whom to ask from their
 * first visit on.
 */
export function warningsOf(config: Config, { kid, origins, controller, contact }: TenantRequest): string[] {
  const log = `${new URL(baseUrl(config)).host}/ledger/${kid}`;
  return [
    ...(config.base_url === null
      ? [
          `gpd: warning: base_url is not set, so the consent log of ${kid} is named ${log}, and a log keeps its name: before you go live, set base_url (GPD_BASE_URL) to the public origin and run gpd init in an empty data directory`,
        ]
      : []),
    ...(origins.length === 0
      ? [
          `gpd: warning: ${kid} has no origin, so no page can use it: gpd tenants set ${kid} origins=https://…`,
        ]
      : []),
    ...(!controller || !contact
      ? [
          `gpd: warning: people are not told who is responsible: gpd tenants set ${kid} 'notice.controller=NAME, ADDRESS' notice.contact=E-MAIL`,
        ]
      : []),
  ];
}

async function add(
  { config, open }: CommandContext,
  kid: string,
  { origin, controller, contact }: NewTenantFlags,
): Promise<void> {
  const tenant = { kid, origins: checkOrigins(origin), controller, contact };
  const store = await open();
  const key = await addTenant(store, config, { ...tenant, now: Date.now() });
  if (!key) throw conflict(`tenant ${kid} already exists`);
  for (const warning of warningsOf(config, tenant)) say(warning);
  const summary = { kid, origins: tenant.origins, generation: key.generation, publicKey: key.publicKey };
  print(summary, () => [`tenant ${kid} added, seal key generation ${key.generation} published`]);
}

async function list({ open }: CommandContext): Promise<void> {
  const { database } = await open();
  const store = createTenantStore(database);
  const tenants = await store.list();
  const rows = tenants.map(({ kid, createdAt, settings }) => ({
    kid,
    createdAt: isoTime(createdAt),
    settings,
  }));
  printTable(rows, 'no tenants; `gpd tenants add` adds one', {
    KID: 'kid',
    SINCE: ({ createdAt }) => createdAt.slice(0, 10),
    ORIGINS: ({ settings }) => settings.origins.join(' ') || '(none)',
  });
  const damaged = (await listKids(database)).filter((kid) => !tenants.some((tenant) => tenant.kid === kid));
  if (damaged.length > 0)
    throw failed(`the stored settings cannot be read: ${damaged.join(', ')}; restore a backup`);
}

async function show({ stored }: CommandContext, kidArgument?: string): Promise<void> {
  const { database, kid, tenant } = await stored(kidArgument);
  const { createdAt, settings } = tenant;
  const keys = await listSealKeys(database.read, kid);
  const apiKeys = await createApiKeyStore(database).list(kid);
  const shown = {
    kid,
    createdAt: isoTime(createdAt),
    settings,
    sealKey: keys.find(({ state }) => state === 'published')?.generation ?? null,
    purposes: (await createTenantStore(database).purposes(kid)).map(({ id }) => id),
    apiKeys: apiKeys.filter(({ revokedAt }) => revokedAt === null).length,
    webhooks: (await listWebhooks(database, kid)).length,
    logEntries: (await readHead(database, kid))?.size ?? 0,
  };
  print(shown, () =>
    alignColumns([
      ['created', shown.createdAt],
      ['seal key', `generation ${shown.sealKey ?? '(none)'}`],
      ['purposes', shown.purposes.join(', ')],
      ['API keys', `${shown.apiKeys} in use`],
      ['webhooks', `${shown.webhooks}`],
      ['log', `${shown.logEntries.toLocaleString('en')} entries`],
      ...TENANT_SETTING_NAMES.map((name) => [name, valueText(settings[name])]),
    ]),
  );
}

/** A name that differs more is no slip of the finger: proposing one would mislead. */
const MAX_TYPOS = 4;

function parseAssignment(text: string): readonly [string, string] {
  const at = text.indexOf('=');
  const name = at === -1 ? text : text.slice(0, at);
  if (!(TENANT_SETTING_NAMES as readonly string[]).includes(name)) {
    const near = closest(name, TENANT_SETTING_NAMES);
    const hint =
      distance(name, near) <= MAX_TYPOS ? `did you mean ${near}?` : '`gpd tenants show` lists them';
    throw misused(`no setting ${name}; ${hint}`);
  }
  if (at === -1) throw misused(`${name}: write ${name}=VALUE`);
  return [name, text.slice(at + 1)];
}

function valueText(value: unknown): string {
  if (typeof value === 'string') return value;
  const isList = Array.isArray(value) && value.every((item) => typeof item === 'string');
  return isList ? value.join(',') : JSON.stringify(value);
}

/** @throws {CommandFailed} that names the setting and its invalid value; of a list, only the invalid item */
function checkedSettings(values: Readonly<Record<string, unknown>>): TenantSettings {
  const { data, error } = tenantSettingsSchema.safeParse(values, { error: explainIssue });
  const [issue] = error?.issues ?? [];
  if (!issue) return data as TenantSettings;
  const [name, item, ...inside] = issue.path;
  const text = String(values[String(name)]);
  const invalidText =
    typeof item === 'number' ? text.split(/[\s,]+/).filter((part) => part !== '')[item] : text;
  // A row of a table is named by its place and field, because its text would hide them.
  const isRow = typeof item === 'number' && (inside.length > 0 || issue.code === 'unrecognized_keys');
  if (isRow) throw misused(`${issue.path.map(String).join('.')}: ${issue.message}`);
  throw misused(`${String(name)}=${invalidText}: ${issue.message}`);
}

async function setSettings({ stored, by }: CommandContext, kid: string, assignments: readonly string[]) {
  const { database } = await stored(kid);
  const values = Object.fromEntries(assignments.map(parseAssignment));
  if (values['origins'] !== undefined) checkOrigins(checkedSettings(values).origins, 'origins=');
  const settings = await createTenantStore(database).saveSettings(
    kid,
    (before) => checkedSettings({ ...before, ...values }),
    await by(kid),
  );
  if (!settings) throw noSuchTenant(kid);
  print({ kid, settings }, () =>
    alignColumns(
      Object.keys(values).map((name) => [name, valueText(settings[name as keyof typeof settings])]),
    ),
  );
}
