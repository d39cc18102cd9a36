import { randomBytes } from 'node:crypto';
import type { Router } from 'express';
import { makeEmbed } from '../consent/embed.ts';
import type { MasterKey } from '../keys/master-key.ts';
import { hmacSha256 } from '../lib/hash.ts';
import type { LogService } from '../log/service.ts';
import { openArchiveSigner } from '../rights/dsar/archive-signer-service.ts';
import { makeExports } from '../rights/dsar/exports-make.ts';
import { outsideOf } from '../rights/erase/tombstone-files.ts';
import type { RightsServices } from '../rights/services-make.ts';
import type { Store } from '../tenants/installation-files.ts';
import { consoleRoutes } from './console-router.ts';
import type { Context, SignInLimits } from './context.ts';
import { makeRender } from './render.ts';
import { makeProvider } from './sign-in-service.ts';
import { makeReadWhole } from './staff.ts';
import { loadStrings } from './strings-files.ts';

/** Hands the console its services. */

export interface ConsoleParts
  extends Pick<
    Context,
    | 'config'
    | 'book'
    | 'views'
    | 'origin'
    | 'tenantOf'
    | 'ingestTenantOf'
    | 'clock'
    | 'onFault'
    | 'onLoginFault'
  > {
  /** Of the OIDC client; null when the console is not configured. */
  readonly clientSecret: string | null;
  readonly store: Pick<Store, 'database'>;
  readonly log: LogService;
  readonly serverSecret: Uint8Array;
  readonly masterKey: () => MasterKey;
  readonly rights: RightsServices;
  readonly limiters: { readonly signIn: SignInLimits };
}

/** Exports and verifications of a tenant at a time, on each node. */
const MAX_READING = 3;
const bannerFiles = new URL('../../dist/banner/', import.meta.url);

function exportsOf(parts: ConsoleParts) {
  const { store, rights, masterKey, clock, origin } = parts;
  const signer = () =>
    openArchiveSigner({ ...store, masterKey: masterKey(), clock, host: new URL(origin()).hostname });
  return makeExports({ ...parts, api: rights.api, signer });
}

const keysOf = (secret: Uint8Array) => ({
  login: hmacSha256(secret, 'gpd/console-login/v1'),
  idToken: hmacSha256(secret, 'gpd/console-id-token/v1'),
});

export function composeConsole(parts: ConsoleParts): Router {
  const { config, store, book, log, tenantOf, ingestTenantOf, clock, origin, views } = parts;
  const { clientSecret, onFault, onLoginFault } = parts;
  const { database } = store;
  const { api: rights, eraser, held, contestTexts } = parts.rights;
  const t = loadStrings(views);
  const keys = keysOf(parts.serverSecret);
  // Named one by one: pages are handed what is derived from a secret, and no secret.
  const base = { config, database, tenantOf, clock, origin, random: randomBytes, keys, onLoginFault };
  return consoleRoutes({
    ...base,
    ingestTenantOf,
    signInLimits: parts.limiters.signIn,
    eraser,
    views,
    onFault,
    t,
    render: makeRender({ ...base, t }),
    held,
    outside: outsideOf({ database, serverSecret: parts.serverSecret }, config),
    provider: makeProvider(base, clientSecret),
    contestTexts,
    rights,
    exports: exportsOf(parts),
    readWhole: makeReadWhole(MAX_READING),
    book,
    log,
    embed: makeEmbed(bannerFiles),
  });
}
