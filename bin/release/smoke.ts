import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { newFolder } from './artefacts.ts';
import { type Place, run, say, type Variables } from './run.ts';
import { trySdks } from './smoke-sdks.ts';
import { withServer } from './smoke-server.ts';

/** Installs every artefact in an empty folder and tries it there. */

const PLAIN = { PATH: '/usr/bin:/bin' };

async function expectPage(url: string): Promise<void> {
  const { status } = await fetch(url);
  if (status !== 200) throw new Error(`${url} answered ${status}`);
}

/** Starts `serve` on an empty data directory and asks for two pages. */
async function tryServer(place: Place, name: string, command: readonly string[], env: Variables) {
  await withServer<{ url: string }>(place, [...command, 'serve'], env, async ({ url }) => {
    for (const path of ['/readyz', '/v1/agent.js']) await expectPage(`${url}${path}`);
  });
  say(`ok: ${name}`);
}

/** Tries each supported Node. SQLite's module comes from the cache if this machine has compiled it before. */
async function tryNpmPackage(place: Place): Promise<void> {
  const prefix = newFolder(place, 'npm');
  const file = join(place.out, `gpd-${place.version}.tgz`);
  run(prefix, {}, 'npm', 'install', '--global', '--prefix', prefix, '--silent', file);
  const program = join(prefix, 'bin/gpd');
  const majors = Object.keys(
    JSON.parse(readFileSync(join(place.source, 'packaging/node.json'), 'utf8')) as object,
  );
  for (const major of majors) {
    const folder = newFolder(place, 'node');
    run(place.source, {}, 'node', 'packaging/node.mjs', major, folder);
    run(folder, {}, 'chmod', '755', 'node');
    await tryServer(place, `npm package on Node ${major}`, [join(folder, 'node'), program], PLAIN);
  }
}

/** Runs on a PATH with only the tools that the launcher calls, without Node and a compiler. */
async function tryArchive(place: Place): Promise<void> {
  const [folder, bare] = [newFolder(place, 'archive'), newFolder(place, 'bare')];
  for (const tool of ['dirname', 'readlink'])
    symlinkSync(run(folder, {}, 'sh', '-c', `command -v ${tool}`), join(bare, tool));
  run(folder, {}, 'tar', '-xf', join(place.out, `gpd-${place.version}-linux-x64.tar.gz`));
  const gpd = join(folder, 'gpd/bin/gpd');
  await tryServer(place, 'portable archive, serve', [gpd], { PATH: bare });
  const demo = [gpd, 'demo', '--port', '0'];
  await withServer<{ urls: { shop: string } }>(place, demo, { PATH: bare }, ({ urls }) =>
    expectPage(urls.shop),
  );
  say('ok: portable archive, demo');
}

/** Unpacks the package only: installing takes root, and `npm run test:package` does it on a separate system. */
async function tryDeb(place: Place): Promise<void> {
  const folder = newFolder(place, 'deb');
  const name = readdirSync(place.out).find((one) => one.endsWith('.deb')) ?? '';
  run(folder, {}, 'dpkg-deb', '--extract', join(place.out, name), folder);
  const program = join(folder, 'usr/lib/gpd/bin/gpd');
  await tryServer(place, 'Debian package', [process.execPath, program], PLAIN);
}

/** Builds the tree from the files that the Containerfile copies; it needs no container engine. */
function tryImageContext(place: Place): void {
  const folder = newFolder(place, 'image');
  run(folder, {}, 'tar', '-xf', join(place.out, `gpd-${place.version}-image.tar.xz`));
  const context = join(folder, `gpd-${place.version}-image`);
  run(place.source, {}, 'cp', '-al', 'node_modules', context);
  run(context, {}, 'node', 'bin/bootstrap.mjs', 'build');
  run(context, {}, 'node', 'packaging/tree.mjs', join(folder, 'tree'));
  if (!existsSync(join(folder, 'tree/dist/cli/main.js'))) throw new Error('image context: no tree was made');
  say('ok: image context; NOT RUN: no container engine built the image');
}

export async function trySmokes(place: Place): Promise<void> {
  run(place.out, {}, 'sha256sum', '--check', '--quiet', 'SHA256SUMS');
  await tryArchive(place);
  await tryDeb(place);
  await tryNpmPackage(place);
  tryImageContext(place);
  await trySdks(place);
}
