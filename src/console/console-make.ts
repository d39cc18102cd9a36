import { randomBytes } from 'node:crypto';
import type { Router } from 'express';
import { makeEmbed } from '../consent/embed.ts';
import { exactRouter } from '../http/methods.ts';
import type { MasterKey } from '../keys/master-key.ts';
import { Refusal } from '../lib/errors.ts';
import { hmacSha256 } from '../lib/hash.ts';
import type { LogService } from '../log/service.ts';
import { openArchiveSigner } from '../rights/dsar/archive-signer-service.ts';
import { makeExports } from '../rights/dsar/staff-export-service.ts';
import { outsideOf } from '../rights/erase/tombstone-files.ts';
import type { RightsServices } from '../rights/services-make.ts';
import type { Store } from '../tenants/installation-files.ts';
import { auditPages } from './audit-pages.ts';
import { casePages } from './case-pages.ts';
import { type Context, makeReadWhole, type SignInLimits } from './context.ts';
import { insightPages, previewFiles } from './insight-pages.ts';
import { openPages, sessionPages } from './login-pages.ts';
import { queuePages } from './queue-pages.ts';
import { makeRender } from './render.ts';
import { errorPage, type PageTable, register } from './session-guard.ts';
import { makeProvider } from './sign-in-service.ts';
import { loadStrings } from './strings-files.ts';
import { subjectPages } from './subject-pages.ts';

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

/** The console under /console: every page, its role and its address, from top to bottom. */

export const TABLES: readonly PageTable[] = [
  sessionPages,
  queuePages,
  casePages,
  subjectPages,
  auditPages,
  insightPages,
];

/** Whatever a page or a form does not take is 405 with what it does. Read off the routes, so that none is forgotten. */
function otherMethods(pages: Router): void {
  const taken = new Map<string, Set<string>>();
  for (const { route } of pages.stack) {
    if (!route) continue;
    const methods = taken.get(route.path) ?? new Set<string>();
    for (const { method } of route.stack) methods.add(method.toUpperCase());
    if (methods.has('GET')) methods.add('HEAD');
    taken.set(route.path, methods);
  }
  for (const [path, methods] of taken) {
    const headers = { allow: [...methods].join(', ') };
    pages.all(path, () => {
      throw new Refusal('method-not-allowed', { headers });
    });
  }
}

export function consoleRoutes(context: Context): Router {
  const pages = exactRouter();
  openPages(pages, context);
  previewFiles(pages, context);
  for (const table of TABLES) register(pages, context, table);
  otherMethods(pages);
  pages.use(() => {
    throw new Refusal('not-found');
  });
  pages.use(errorPage(context));
  // A proxy that keeps /console from strangers keeps /CONSOLE from them as well.
  return exactRouter().use('/console', pages);
}
