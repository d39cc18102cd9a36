import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { beforeAll, expect, it, vi } from 'vitest';
import cases from '../../sdk/conformance/cases.json' with { type: 'json' };
import { startServers } from '../../sdk/node/test/conformance/servers.ts';
import { spawnTool, tempDir } from '../support/command.ts';
import { freePort } from '../support/ports.ts';
import { started } from '../support/started.ts';

/**
 * The Node SDK in Bun, Deno and workerd (Cloudflare Workers), which npm installs. Each runs every shared case; the two that differ are
 * named, so that a further difference fails.
 */

const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const IMPORTS = `import { failuresOf } from '${path('test/package/support/cases.ts')}';
  import file from '${path('sdk/conformance/cases.json')}';`;
const PROGRAM = `${IMPORTS}
  console.log(JSON.stringify(await failuresOf(file.cases, JSON.parse(process.env.GPD_CONFORMANCE))));
  process.exit(0);`;
const WORKER = `${IMPORTS}
  export default { fetch: async (request) => Response.json(await failuresOf(file.cases, await request.json())) };`;

/** Bun and workerd replay by themselves what breaks on a connection that they used before, so the server counts one request more. */
const REPLAYED_TWICE = 'checkout-never-refuses';
/** workerd fails alike for a refused port, an unknown name and a wrong certificate. */
const NO_DETAIL = 'why-there-is-no-answer';
const namesOf = (failures: readonly string[]): readonly string[] =>
  failures.map((line) => line.split(':')[0] ?? '');

const folder = tempDir('runtimes');
const running = started(startServers);

const bundle = (name: string, contents: string) =>
  build({
    stdin: { contents, resolveDir: folder, loader: 'ts' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'es2023',
    outfile: join(folder, name),
  });

const workerdConfig = (port: number): string => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (modules = [(name = "worker", esModule = embed "worker.mjs")],
      compatibilityDate = "2025-09-01", compatibilityFlags = ["nodejs_compat"], globalOutbound = "net")),
    (name = "net", network = (allow = ["public", "private", "local"], tlsOptions = (trustBrowserCas = true)))],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]);
`;

beforeAll(async () => {
  writeFileSync(join(folder, 'package.json'), '{ "private": true }');
  const words = ['install', '--no-audit', '--no-fund', 'bun', 'deno', 'workerd'];
  const { exited, output } = spawnTool('npm', words, { cwd: folder });
  expect((await exited).code, output.stderr).toBe(0);
  await Promise.all([bundle('program.mjs', PROGRAM), bundle('worker.mjs', WORKER)]);
});

it.each([
  ['bun', ['program.mjs'], [REPLAYED_TWICE]],
  ['deno', ['run', '--allow-all', 'program.mjs'], []],
])('%s runs the shared cases', async (name, words, failing) => {
  expect(cases.cases.length).toBeGreaterThan(100);
  const { servers } = running;
  const { exited, output } = spawnTool(join(folder, 'node_modules/.bin', name), words, {
    cwd: folder,
    env: { GPD_CONFORMANCE: JSON.stringify(servers) },
  });
  const { code } = await exited;
  expect(code, output.stderr).toBe(0);
  const failures = JSON.parse(output.stdout) as string[];
  expect(namesOf(failures), failures.join('\n')).toEqual(failing);
});

it('workerd runs the shared cases', async () => {
  const port = await freePort();
  writeFileSync(join(folder, 'config.capnp'), workerdConfig(port));
  const workerd = spawnTool(join(folder, 'node_modules/.bin/workerd'), ['serve', 'config.capnp'], {
    cwd: folder,
  });
  try {
    const body = JSON.stringify(running.servers);
    const send = () => fetch(`http://127.0.0.1:${port}`, { method: 'POST', body });
    const failures = (await (await vi.waitFor(send, { timeout: 60_000 })).json()) as string[];
    expect([...namesOf(failures)].sort(), failures.join('\n')).toEqual([REPLAYED_TWICE, NO_DETAIL]);
  } finally {
    workerd.child.kill();
    await workerd.exited;
  }
});
