import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Router } from 'express';
import { makeApiKey } from '../auth/credentials.ts';
import { type Config, ConfigError } from '../config.ts';
import { exactRouter } from '../http/register.ts';
import { toldOnce } from '../ingest/verdict/policy.ts';
import { Refusal } from '../lib/errors.ts';
import { createTenant } from '../ops/new-tenant-service.ts';
import type { DecisionResponse } from '../schema/responses.ts';
import { makeApiKeyStore } from '../tenants/api-key-store.ts';
import { initialiseStore } from '../tenants/installation-files.ts';
import { tenantSettingsSchema } from '../tenants/settings.ts';
import { DEMO_USERS, startDemoIdp } from './idp.ts';

/** `gpd demo`: a throw-away installation with one tenant and a shop page. Database, keys and server are the real ones. */

const DEMO_KID = 'demo-shop';

/** Gone with this process, however that ends: by a signal, a failed start or a fail-stop. */
function throwAwayDirectory(): string {
  let directory: string;
  try {
    directory = mkdtempSync(join(tmpdir(), 'gpd-demo-'));
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code;
    throw new ConfigError(`cannot make a directory in ${tmpdir()} (${why}): name another one in TMPDIR`);
  }
  process.once('exit', () => rmSync(directory, { recursive: true, force: true, maxRetries: 3 }));
  return directory;
}

/** A free port, so that the tenant's origin is known before the server listens. */
async function freePort(host: string): Promise<number> {
  const probe = createServer().listen(0, host);
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  await once(probe.close(), 'close');
  return port;
}

/** @returns the keys of the shop: its backend holds the secret one, its page shows the publishable one */
async function seed(config: Config, origins: readonly string[]) {
  const store = await initialiseStore(config);
  try {
    const now = Date.now();
    await createTenant(store, config, { kid: DEMO_KID, origins, now });
    const addKey = async (scope: 'secret' | 'publishable', name: string): Promise<string> => {
      const { key, secret } = makeApiKey({ kid: DEMO_KID, scope, name }, now, randomBytes);
      await makeApiKeyStore(store.database).insert(key, { role: 'system', ref: 'demo', at: now });
      return secret;
    };
    return {
      secret: await addKey('secret', 'demo shop backend'),
      publishable: await addKey('publishable', 'demo shop page'),
    };
  } finally {
    await store.database.close();
  }
}

/** The shop's own backend: it asks gpd for the verdict with a key that the browser never sees. */
function shopRoutes(keys: Awaited<ReturnType<typeof seed>>, url: () => string): Router {
  const router = exactRouter();
  const decisionOf = (requestId: string): Promise<Response> =>
    fetch(new URL(`/v1/decisions/${encodeURIComponent(requestId)}`, url()), {
      headers: { authorization: `Bearer ${keys.secret}` },
    });
  router.get('/', (_request, response) => response.redirect('/demo'));
  router.get('/demo', (_request, response) => {
    response.set('cache-control', 'no-store');
    response.render('demo/shop', {
      kid: DEMO_KID,
      shopName: 'Lanterne',
      publishableKey: keys.publishable,
      decisionsUrl: '/demo/decision',
      retentionDays: tenantSettingsSchema.shape['retention.days'].parse(undefined),
    });
  });
  router.get('/demo/decision', async (request, response) => {
    const { requestId } = request.query;
    if (typeof requestId !== 'string') throw new Refusal('invalid-request');
    const answer = await decisionOf(requestId);
    const decision = (await answer.json()) as Partial<DecisionResponse>;
    response
      .status(answer.status)
      .set('cache-control', 'no-store')
      .json(decision.rules ? { ...decision, rules: toldOnce(decision.rules) } : decision);
  });
  return router;
}

/** @param base settings of the environment; the data directory and the database are always throw-away ones */
export async function prepareDemo(base: Config) {
  const directory = throwAwayDirectory();
  const port = base.port === 0 ? await freePort(base.host) : base.port;
  const origin = base.base_url ?? `http://localhost:${port}`;
  const idp = await startDemoIdp(DEMO_KID, origin);
  const secretFile = join(directory, 'console-client-secret');
  await writeFile(secretFile, idp.clientSecret, { mode: 0o600 });
  const config: Config = {
    ...base,
    oidc_issuer: idp.issuer,
    oidc_audience: idp.audience,
    console_client_id: idp.clientId,
    console_client_secret_file: secretFile,
    data_dir: directory,
    database_url: null,
    master_key_file: null,
    credentials: {},
    port,
    base_url: origin,
  };
  const keys = await seed(config, [`http://localhost:${port}`, `http://127.0.0.1:${port}`]);
  return {
    config,
    users: DEMO_USERS,
    routers: ({ url }: { readonly url: () => string }) => Promise.resolve([shopRoutes(keys, url)]),
  };
}
