import { closest } from 'fastest-levenshtein';
import { baseUrl, type Config } from '../../config.ts';
import { isoTime } from '../../lib/clock.ts';
import { createTenant, type NewTenant } from '../../ops/new-tenant-service.ts';
import { explainIssue } from '../../schema/explain-issue.ts';
import {
  isWildcard,
  originSchema,
  TENANT_SETTING_NAMES,
  type TenantSettings,
  tenantSettingsSchema,
} from '../../tenants/settings.ts';
import { makeTenantStore } from '../../tenants/tenant-store.ts';
import { command, withContext } from '../command.ts';
import { type Actions, MANY } from '../define.ts';
import { conflict, failed, misused, print, printTable, say, table } from '../output.ts';
import { checked, type Flags, noSuchTenant } from '../run.ts';
import { policy } from './policy.ts';
import { remove } from './tenant-remove.ts';

/** @param field that the operator wrote them in */
export function checkOrigins(origins: readonly string[], field = '--origin'): string[] {
  return origins.map((text) => {
    const origin = checked(originSchema, text, `${field}: `);
    if (!isWildcard(origin)) return origin;
    throw misused(`${field}: ${text}: a wildcard matches no page; name each origin`);
  });
}

export type NewTenantFlags = Flags<'controller' | 'contact'> & { readonly origin: string[] };

/** Easy to set now. Later the log keeps its name, and people were told of nobody. */
export function warningsOf(config: Config, { kid, origins, controller, contact }: NewTenant): string[] {
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

async function add(kid: string, { origin, controller, contact }: NewTenantFlags): Promise<void> {
  const tenant = { kid, origins: checkOrigins(origin), controller, contact };
  await withContext(async ({ store, config }) => {
    const key = await createTenant(store, config, { ...tenant, now: Date.now() });
    if (!key) throw conflict(`tenant ${kid} already exists`);
    for (const warning of warningsOf(config, tenant)) say(warning);
    const made = { kid, origins: tenant.origins, generation: key.generation, publicKey: key.publicKey };
    print(made, () => [`tenant ${kid} added, seal key generation ${key.generation} published`]);
  });
}

const list = command(async ({ database }) => {
  const store = makeTenantStore(database);
  const tenants = await store.list();
  const rows = tenants.map(({ kid, createdAt, settings }) => ({
    kid,
    createdAt: isoTime(createdAt),
    settings,
  }));
  printTable(rows, rows, {
    KID: 'kid',
    SINCE: ({ createdAt }) => createdAt.slice(0, 10),
    ORIGINS: ({ settings }) => settings.origins.join(' ') || '(none)',
  });
  const damaged = (await store.kids()).filter((kid) => !tenants.some((tenant) => tenant.kid === kid));
  if (damaged.length > 0)
    throw failed(`the stored settings cannot be read: ${damaged.join(', ')}; restore a backup`);
});

function parseAssignment(text: string): readonly [string, string] {
  const at = text.indexOf('=');
  const name = at === -1 ? text : text.slice(0, at);
  if (!(TENANT_SETTING_NAMES as readonly string[]).includes(name)) {
    throw misused(`no setting ${name}; did you mean ${closest(name, TENANT_SETTING_NAMES)}?`);
  }
  if (at === -1) throw misused(`write ${name}=VALUE`);
  return [name, text.slice(at + 1)];
}

function shown(value: unknown): string {
  if (typeof value === 'string') return value;
  return Array.isArray(value) ? value.join(',') : JSON.stringify(value);
}

/** @throws {CommandFailed} that names the setting */
function checkedSettings(values: object): TenantSettings {
  const { data, error } = tenantSettingsSchema.safeParse(values, { error: explainIssue });
  if (error) throw misused(`${String(error.issues[0]?.path[0])}: ${error.issues[0]?.message}`);
  return data;
}

async function set(kid: string, assignments: readonly string[]): Promise<void> {
  const values = Object.fromEntries(assignments.map(parseAssignment));
  if (values['origins'] !== undefined) checkOrigins(checkedSettings(values).origins, 'origins');
  await withContext(async ({ store, by }) => {
    const settings = await makeTenantStore(store.database).saveSettings(
      kid,
      (before) => checkedSettings({ ...before, ...values }),
      await by(kid),
    );
    if (!settings) throw noSuchTenant(kid);
    print({ kid, settings }, () =>
      table(Object.keys(values).map((name) => [name, shown(settings[name as keyof typeof settings])])),
    );
  });
}

export const ACTIONS: Actions = {
  add: [add, { origin: MANY }],
  list,
  set: [set, {}, { settings: TENANT_SETTING_NAMES.join(', ') }],
  policy,
  remove,
};
