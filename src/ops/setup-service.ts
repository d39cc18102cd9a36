import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { NEEDS_NAME, relyingPartyOf } from '../attest/ceremony.ts';
import { createApiKey } from '../auth/credentials.ts';
import { type Config, ConfigError } from '../config.ts';
import { listKids } from '../db/meta-store.ts';
import { succeeds } from '../lib/errors.ts';
import { kidSchema } from '../schema/bundle.ts';
import { explainIssue } from '../schema/explain-issue.ts';
import { publicOrigin } from '../schema/settings.ts';
import { createApiKeyStore } from '../tenants/api-key-store.ts';
import {
  AlreadyInitialised,
  createDataDirectory,
  initialiseStore,
  openStore,
  type Store,
} from '../tenants/installation-files.ts';
import { isWildcard, originSchema } from '../tenants/settings.ts';
import { createTenantStore } from '../tenants/tenant-store.ts';
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

/**
 * Puts the base URL into the configuration file for the next start, in place of that of an earlier try.
 * @returns false where it cannot be written
 */
const writeBaseUrl = (file: string, baseUrl: string): boolean =>
  succeeds(() => {
    const text = (existsSync(file) ? readFileSync(file, 'utf8') : '').replace(/^base_url = .*\n/m, '');
    // An editor may have left the last line without its end.
    const gap = text === '' || text.endsWith('\n') ? '' : '\n';
    writeFileSync(file, `${text}${gap}base_url = ${JSON.stringify(baseUrl)}\n`, { mode: 0o600 });
  });

/** It is written before anything else and deleted at the end: between them the setup can be repeated. */
const unfinishedFile = ({ data_dir }: Config): string => join(data_dir, 'setup.unfinished');

export const isSetupUnfinished = (config: Config): boolean => existsSync(unfinishedFile(config));

/** `gpd init` ends an interrupted setup too. */
export const finishSetup = (config: Config): void => rmSync(unfinishedFile(config), { force: true });

/**
 * Creates the installation, or opens the one of a setup that was interrupted.
 * @throws {AlreadyInitialised}
 */
async function createOrOpen(config: Config, isRepeated: boolean): Promise<Store> {
  try {
    return await initialiseStore(config);
  } catch (error) {
    if (!(error instanceof AlreadyInitialised)) throw error;
    if (isRepeated) return openStore(config);
    finishSetup(config);
    throw error;
  }
}

/** @param file the configuration file @throws {AlreadyInitialised}, {ConfigError} */
export async function install(config: Config, setup: Setup, file: string): Promise<Installed> {
  const { tenant: kid, origin, baseUrl, controller, contact } = setup;
  const completeConfig = { ...config, base_url: baseUrl };
  const isRepeated = isSetupUnfinished(config);
  createDataDirectory(config);
  writeFileSync(unfinishedFile(config), '', { mode: 0o600 });
  // The log of the tenant takes its name from it, so a repeated setup must find it.
  const isWritten = config.base_url !== null || writeBaseUrl(file, baseUrl);
  const store = await createOrOpen(completeConfig, isRepeated);
  try {
    const now = Date.now();
    const [firstKid] = await listKids(store.database);
    if (firstKid !== undefined && firstKid !== kid)
      throw new ConfigError(`the interrupted setup made the tenant ${firstKid}: enter that short name`);
    if (!(await createTenantStore(store.database).get(kid)))
      await addTenant(store, completeConfig, { kid, origins: [origin], controller, contact, now });
    const { key, secret } = createApiKey({ kid, scope: 'publishable', name: 'page' }, now, randomBytes);
    await createApiKeyStore(store.database).insert(key, { role: 'system', ref: 'setup', at: now });
    finishSetup(config);
    return { ...setup, key: secret, unwritten: isWritten ? null : file };
  } finally {
    await store.database.close();
  }
}
