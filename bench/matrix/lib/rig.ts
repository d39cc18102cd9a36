import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../../src/config.ts';
import { wrapContext } from '../../../src/keys/generation.ts';
import type { DecisionResponse } from '../../../src/schema/responses.ts';
import { createOpener, type Opener } from '../../../src/seal/open.ts';
import { openStore } from '../../../src/tenants/installation-files.ts';
import { listSealKeys } from '../../../src/tenants/secrets-store.ts';
import { cleanEnvironment, firstLine, runNode, startNode, stop } from '../../lib/child.ts';

/** Starts a temporary gpd behind the proxy of site.ts, as a shop would run it. */

export const KID = 'matrix';
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const GPD = join(ROOT, 'bin', 'gpd');

export interface Rig {
  readonly port: number;
  /** Decrypts the bundles of the runs, so that their signals can be judged again. */
  readonly open: Opener;
  decision(requestId: string): Promise<DecisionResponse>;
  stop(): Promise<void>;
}

async function sealKey(environment: NodeJS.ProcessEnv): Promise<Opener> {
  const store = await openStore(loadConfig({ environment, flags: {} }));
  try {
    const keys = await listSealKeys(store.database.read, KID);
    const key = keys.find((generation) => generation.state === 'published');
    if (!key || key.wrappedPrivate === null) throw new Error('the tenant has no published seal key');
    return createOpener(store.masterKey.unwrap(key.wrappedPrivate, wrapContext(KID, key.generation)));
  } finally {
    await store.database.close();
  }
}

/** @param origin of the proxy, which claims https towards the browser */
export async function startRig(origin: string): Promise<Rig> {
  if (
    !existsSync(join(ROOT, 'dist', 'cli', 'main.js')) ||
    !existsSync(join(ROOT, 'dist', 'agent', 'agent.js'))
  )
    throw new Error('gpd is not built: run `npm run build` first');
  const directory = mkdtempSync(join(tmpdir(), 'gpd-matrix-'));
  const settings = {
    GPD_DATA_DIR: join(directory, 'data'),
    GPD_BASE_URL: origin,
    GPD_RATE_INGEST: 'off',
    GPD_TRUSTED_PROXIES: '127.0.0.0/8',
    GPD_LOG_LEVEL: 'warn',
  };
  const options = { cwd: directory, env: cleanEnvironment(settings) };
  const gpd = async (...args: string[]): Promise<string> =>
    (await runNode([GPD, ...args, '--json'], options)).stdout;
  await gpd('init', '--tenant', KID, '--origin', origin);
  const { key } = JSON.parse(
    await gpd('apikeys', 'create', KID, '--scope', 'secret', '--name', 'matrix'),
  ) as {
    key: string;
  };
  const opener = await sealKey(settings);
  const child = startNode([GPD, 'serve', '--port', '0', '--json'], options);
  const { port } = JSON.parse(await firstLine(child)) as { port: number };
  return {
    port,
    open: opener,
    async decision(requestId) {
      const address = `http://127.0.0.1:${port}/v1/decisions/${requestId}`;
      const answer = await fetch(address, { headers: { authorization: `Bearer ${key}` } });
      if (!answer.ok) throw new Error(`the decision was answered ${answer.status}`);
      return (await answer.json()) as DecisionResponse;
    },
    async stop() {
      await stop(child);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
