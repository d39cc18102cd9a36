import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { relyingPartyOf } from '../attest/ceremony.ts';
import { createApiKey } from '../auth/credentials.ts';
import type { Config } from '../config.ts';
import { listKids } from '../db/meta-store.ts';
import { succeeds } from '../lib/errors.ts';
import type { TextKey } from '../lib/people/say.ts';
import { kidSchema } from '../schema/bundle.ts';
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

const hasName = (origin: string): boolean => relyingPartyOf(origin, '') !== null;

/** The key of a text of the form, instead of a message. */
const because = (error: TextKey) => ({ error, abort: true });

const setupSchema = z.object({
  tenant: z
    .string(because('setup.badTenant'))
    .refine((text) => kidSchema.safeParse(text).success, because('setup.badTenant')),
  origin: z
    .string(because('setup.noOrigin'))
    .min(1, because('setup.noOrigin'))
    .refine((text) => originSchema.safeParse(text).success, because('setup.badOrigin'))
    .pipe(originSchema)
    .refine((origin) => !isWildcard(origin), because('setup.wildcard'))
    .refine(hasName, because('setup.digits')),
  baseUrl: z
    .string(because('setup.noBaseUrl'))
    .refine((text) => publicOrigin.safeParse(text).success, because('setup.noBaseUrl'))
    .refine(hasName, because('setup.digits')),
  controller: z
    .string()
    .trim()
    .max(MAX_NOTICE, because('setup.long'))
    .transform((text) => text || undefined)
    .optional(),
  contact: z
    .string(because('setup.noContact'))
    .trim()
    .min(1, because('setup.noContact'))
    .max(MAX_NOTICE, because('setup.long')),
});

export type Setup = z.output<typeof setupSchema>;

/** @returns the values, or for each invalid field the key of a text */
export function readSetup(values: Readonly<Record<string, string | undefined>>) {
  const { data, error } = setupSchema.safeParse(values);
  const keys = error?.issues.map(({ path, message }) => [String(path[0]), message as TextKey] as const) ?? [];
  return data ? { data } : { errors: Object.fromEntries(keys) };
}

export interface Installed extends Setup {
  /** The publishable API key of the page. */
  readonly key: string;
  /** The configuration file if base_url could not be written to it; null: nothing is left to do. */
  readonly unwritten: string | null;
}

/** An interrupted setup made this tenant, whose log keeps that name. */
export interface InterruptedSetup {
  readonly interruptedTenant: string;
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
export async function install(
  config: Config,
  setup: Setup,
  file: string,
): Promise<Installed | InterruptedSetup> {
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
    if (firstKid !== undefined && firstKid !== kid) return { interruptedTenant: firstKid };
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
