import { nearest } from '../../config.ts';
import { isoTime } from '../../lib/clock.ts';
import { createTenant } from '../../ops/new-tenant-service.ts';
import { originSchema, TENANT_SETTING_NAMES, tenantSettingsSchema } from '../../tenants/settings.ts';
import { makeTenantStore } from '../../tenants/tenant-store.ts';
import { type Actions, MANY } from '../define.ts';
import { withOperator } from '../operator.ts';
import { conflict, failed, misused, print, printTable, table } from '../output.ts';
import { checked, checkedPart, noSuchTenant, onStore, withStore } from '../run.ts';
import { policy } from './policy.ts';
import { remove } from './tenant-remove.ts';

export function checkOrigins(origins: readonly string[]): string[] {
  return origins.map((text) => checked(originSchema, text, `--origin ${text}: `));
}

async function add(kid: string, options: { readonly origin: string[] }): Promise<void> {
  const origins = checkOrigins(options.origin);
  await withStore(async (store, config) => {
    const key = await createTenant(store, config, { kid, origins, now: Date.now() });
    if (!key) throw conflict(`tenant ${kid} already exists`);
    const made = { kid, origins, generation: key.generation, publicKey: key.publicKey };
    print(made, () => [`tenant ${kid} added, seal key generation ${key.generation} published`]);
  });
}

const list = onStore(() => async ({ database }) => {
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
    throw misused(`no setting ${name}; did you mean ${nearest(name, TENANT_SETTING_NAMES)}?`);
  }
  if (at === -1) throw misused(`write ${name}=VALUE`);
  return [name, text.slice(at + 1)];
}

function shown(value: unknown): string {
  if (typeof value === 'string') return value;
  return Array.isArray(value) ? value.join(',') : JSON.stringify(value);
}

async function set(kid: string, assignments: readonly string[]): Promise<void> {
  const values = Object.fromEntries(assignments.map(parseAssignment));
  await withOperator(async ({ store, by }) => {
    const settings = await makeTenantStore(store.database).saveSettings(
      kid,
      (before) => checkedPart(tenantSettingsSchema, { ...before, ...values }),
      by(kid),
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
