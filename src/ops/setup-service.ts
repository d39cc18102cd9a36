import { randomBytes } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
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

/** Checks the form of `gpd serve --setup`, and creates the installation and its API key. */

const MAX_NOTICE = 4000;

const TENANT_RULE = 'a short name has 1 to 64 of A-Z a-z 0-9 . _ -, and is not . or ..';

const setupSchema = z.object({
  // The form does not say “kid”, so its message does not either.
  tenant: z.string().refine((text) => kidSchema.safeParse(text).success, TENANT_RULE),
  origin: originSchema.refine((origin) => !isWildcard(origin), 'a wildcard matches no page: name one origin'),
  baseUrl: publicOrigin,
  controller: z
    .string()
    .trim()
    .max(MAX_NOTICE)
    .transform((text) => text || undefined)
    .optional(),
  contact: z.string().trim().min(1, 'is missing').max(MAX_NOTICE),
});

export type Setup = z.output<typeof setupSchema>;

/** @returns the values, or for each invalid field a sentence */
export function readSetup(values: Readonly<Record<string, string | undefined>>) {
  const { data, error } = setupSchema.safeParse(values, { error: explainIssue });
  const messages = error?.issues.map(({ path, message }) => [String(path[0]), message] as const) ?? [];
  return data ? { data } : { errors: Object.fromEntries(messages) };
}

export interface Installed extends Setup {
  /** The publishable API key of the page. */
  readonly key: string;
  /** The configuration file if base_url could not be written to it; null: nothing is left to do. */
  readonly unwritten: string | null;
}

/** Adds the base URL to the configuration file for the next start. @returns false where it cannot be written */
const writeBaseUrl = (file: string, baseUrl: string): boolean =>
  succeeds(() => {
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    // An editor may have left the last line without its end.
    const gap = text === '' || text.endsWith('\n') ? '' : '\n';
    appendFileSync(file, `${gap}base_url = ${JSON.stringify(baseUrl)}\n`, { mode: 0o600 });
  });

/** @param file the configuration file @throws {AlreadyInitialised}, {ConfigError} */
export async function install(config: Config, setup: Setup, file: string): Promise<Installed> {
  const { tenant: kid, origin, baseUrl, controller, contact } = setup;
  const completeConfig = { ...config, base_url: baseUrl };
  const store = await initialiseStore(completeConfig);
  try {
    const now = Date.now();
    await addTenant(store, completeConfig, { kid, origins: [origin], controller, contact, now });
    const { key, secret } = createApiKey({ kid, scope: 'publishable', name: 'page' }, now, randomBytes);
    await createApiKeyStore(store.database).insert(key, { role: 'system', ref: 'setup', at: now });
    const isWritten = config.base_url !== null || writeBaseUrl(file, baseUrl);
    return { ...setup, key: secret, unwritten: isWritten ? null : file };
  } finally {
    await store.database.close();
  }
}
