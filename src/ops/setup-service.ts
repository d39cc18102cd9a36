import { randomBytes } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { z } from 'zod';
import { createApiKey } from '../auth/credentials.ts';
import type { Config } from '../config.ts';
import { succeeds } from '../lib/errors.ts';
import { kidSchema } from '../schema/bundle.ts';
import { explainIssue } from '../schema/explain-issue.ts';
import { publicOrigin } from '../schema/settings.ts';
import { createApiKeyStore } from '../tenants/api-key-store.ts';
import { initialiseStore } from '../tenants/installation-files.ts';
import { isWildcard, originSchema } from '../tenants/settings.ts';
import { addTenant } from './new-tenant-service.ts';

/** Does the work of `gpd init` and `gpd apikeys create` for the form of `gpd serve --setup`. */

const notice = z.string().trim().min(1, 'is missing').max(4000);

const setupSchema = z.object({
  tenant: kidSchema,
  origin: originSchema.refine((origin) => !isWildcard(origin), 'a wildcard matches no page: name one origin'),
  baseUrl: publicOrigin,
  contact: notice,
});

export type Setup = z.output<typeof setupSchema>;

/** The values, or a sentence for each field that is wrong. */
export function readSetup(given: Readonly<Record<string, string | undefined>>) {
  const { data, error } = setupSchema.safeParse(given, { error: explainIssue });
  const wrong = error?.issues.map(({ path, message }) => [String(path[0]), message] as const) ?? [];
  return data ? { data } : { wrong: Object.fromEntries(wrong) };
}

export interface Installed extends Setup {
  /** The publishable key of the page. */
  readonly key: string;
  /** Null: it names the base URL now. */
  readonly unwritten: string | null;
}

/** The next start reads the base URL from the file that this one would have read. @returns false where it cannot be written */
const keepBaseUrl = (file: string, baseUrl: string): boolean =>
  succeeds(() => appendFileSync(file, `base_url = ${JSON.stringify(baseUrl)}\n`, { mode: 0o600 }));

/** @param file the configuration file @throws {AlreadyInitialised}, {ConfigError} */
export async function install(config: Config, setup: Setup, file: string): Promise<Installed> {
  const { tenant: kid, origin, baseUrl, contact } = setup;
  const whole = { ...config, base_url: baseUrl };
  const store = await initialiseStore(whole);
  try {
    const now = Date.now();
    await addTenant(store, whole, { kid, origins: [origin], contact, now });
    const { key, secret } = createApiKey({ kid, scope: 'publishable', name: 'page' }, now, randomBytes);
    await createApiKeyStore(store.database).insert(key, { role: 'system', ref: 'setup', at: now });
    const isKept = config.base_url !== null || keepBaseUrl(file, baseUrl);
    return { ...setup, key: secret, unwritten: isKept ? null : file };
  } finally {
    await store.database.close();
  }
}
