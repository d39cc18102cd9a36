import { randomBytes } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { NEEDS_NAME, relyingPartyOf } from '../attest/ceremony.ts';
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

const TENANT_RULE = 'Enter a short name: 1 to 64 of A-Z a-z 0-9 . _ -, and not . or ..';
const NO_NAME = `Enter a name, not an address of digits: ${NEEDS_NAME}.`;
const hasName = (origin: string): boolean => relyingPartyOf(origin, '') !== null;

/** The form shows these where a field is empty or no address. */
const ENTER = {
  origin: 'Enter the address of the website, e.g. https://shop.example',
  baseUrl: 'Enter the address people will use, e.g. https://id.shop.example',
  contact: 'Enter a contact.',
};

const setupSchema = z.object({
  // The form does not say “kid”, so its message does not either.
  tenant: z.string(TENANT_RULE).refine((text) => kidSchema.safeParse(text).success, TENANT_RULE),
  origin: z
    .string(ENTER.origin)
    .min(1, ENTER.origin)
    .pipe(originSchema)
    .refine((origin) => !isWildcard(origin), 'A wildcard matches no page: enter one origin.')
    .refine(hasName, NO_NAME),
  baseUrl: z
    .string(ENTER.baseUrl)
    .refine((text) => publicOrigin.safeParse(text).success, { error: ENTER.baseUrl, abort: true })
    .refine(hasName, NO_NAME),
  controller: z
    .string()
    .trim()
    .max(MAX_NOTICE)
    .transform((text) => text || undefined)
    .optional(),
  contact: z.string(ENTER.contact).trim().min(1, ENTER.contact).max(MAX_NOTICE),
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
