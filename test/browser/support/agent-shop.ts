import { cpSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, vi } from 'vitest';
import { addApiKey } from '../../support/api-key.ts';
import { gpdJson, spawnTool, tempDir } from '../../support/command.ts';
import { freePort } from '../../support/ports.ts';
import { type Gpd, startGpd } from '../../support/server.ts';
import { installSdk } from './pasted.ts';

/** Starts a shop that somebody integrated, and gpd beside it: ours, or one with the forms and addresses of ours. */

const INTEGRATED = fileURLToPath(new URL('../agent-shop/', import.meta.url));
const EXPRESS = fileURLToPath(new URL('../../../node_modules/express', import.meta.url));
const PURPOSES = ['newsletter', 'offers', 'analytics', 'video'];

export interface AgentShop {
  readonly url: string;
  readonly gpd: Gpd;
  readonly gpdUrl: string;
  readonly secret: string;
  command(...words: readonly string[]): Promise<Record<string, unknown>>;
  stop(): Promise<void>;
}

/** A copy of the project's shop with its two packages. */
async function copyOfOurs(): Promise<string> {
  const folder = tempDir('shop');
  cpSync(INTEGRATED, folder, { recursive: true });
  await installSdk(folder);
  symlinkSync(EXPRESS, join(folder, 'node_modules/express'));
  return folder;
}

/** @param folder with its packages installed; without one, or empty, it is the project's shop */
export async function startAgentShop(folder: string | undefined): Promise<AgentShop> {
  const cwd = folder === undefined || folder === '' ? await copyOfOurs() : folder;
  const dataDir = join(tempDir('agent-shop'), 'data');
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const command: AgentShop['command'] = (...words) => gpdJson(words, { env: { GPD_DATA_DIR: dataDir } });
  await command('init', '--tenant', 'shop', '--origin', url);
  for (const id of PURPOSES) await command('consent', 'purposes', 'set', 'shop', id, '--title', id);
  const hook = await command('webhooks', 'add', 'shop', `${url}/hooks`, '--allow-private');
  const gpd = await startGpd({ dataDir, settings: { GPD_RATE_CONSENT_NEW: 'off' } });
  const gpdUrl = `http://localhost:${gpd.port}`;
  const secret = await addApiKey(gpd, 'secret', 'shop');
  const env = {
    ...{ NODE_ENV: 'production', PORT: String(port), GPD_CONSENT_URL: gpdUrl, GPD_CONSENT_KEY: secret },
    GPD_PUBLISHABLE_KEY: await addApiKey(gpd, 'publishable', 'shop'),
    WEBHOOK_SECRET: String(hook['secret']),
  };
  const built = spawnTool('npm', ['run', 'build', '--if-present'], { cwd, env });
  const { code } = await built.exited;
  if (code !== 0) throw new Error(`the shop does not build: ${built.output.stdout}${built.output.stderr}`);
  // Without npm between: a signal ends the shop, and not its parent.
  const { scripts } = JSON.parse(readFileSync(join(cwd, 'package.json'), 'utf8'));
  const path = `${join(cwd, 'node_modules/.bin')}:${process.env['PATH']}`;
  const shop = spawnTool('sh', ['-c', `exec ${scripts.start}`], { cwd, env: { ...env, PATH: path } });
  const answers = async () => {
    expect(shop.child.exitCode, shop.output.stderr).toBeNull();
    expect((await fetch(url)).status, shop.output.stderr).toBe(200);
  };
  await vi.waitFor(answers, { timeout: 60_000, interval: 100 });
  return {
    ...{ url, gpd, gpdUrl, secret, command },
    async stop() {
      shop.child.kill('SIGKILL');
      await gpd.stop();
      await shop.exited;
    },
  };
}
