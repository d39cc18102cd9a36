import { copyFileSync, createWriteStream, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ZipFile } from 'yazl';
import { copySdk, createNpmPackage, newFolder } from './artefacts.ts';
import { fixedEnvironment, type Place, run } from './run.ts';

/** Creates the packages of the four SDKs, the browser and React in the formats of their registries. */

const GO_MODULE = 'gpd.dev/consent-go';

/** Creates wheel and source distribution with the version of hatchling that the SDK's tests use. */
function createPython(place: Place): void {
  const folder = copySdk(place, 'python');
  const env = fixedEnvironment(place.epoch);
  const venv = newFolder(place, 'venv');
  run(folder, env, 'python3', '-m', 'venv', venv);
  const pinned = readFileSync(join(folder, 'requirements-dev.txt'), 'utf8');
  const tools =
    pinned.match(/^(?:hatchling|packaging|pathspec|pluggy|tomlkit|trove-classifiers)==.*$/gm) ?? [];
  run(folder, env, join(venv, 'bin/pip'), 'install', '--quiet', ...tools);
  run(folder, env, join(venv, 'bin/python'), '-m', 'hatchling', 'build', '--directory', place.out);
}

/**
 * Creates the zip of a Go module, with every file below MODULE@vVERSION/ (go.dev/ref/mod#zip-files). Its licence is the repository's, as
 * the go command takes it (go.dev/ref/mod#vcs-license).
 */
async function createGo({ source, out, version, epoch }: Place): Promise<void> {
  const folder = join(source, 'sdk/go');
  const zip = new ZipFile();
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .concat('LICENSE')
    .sort();
  for (const path of files) {
    const name = `${GO_MODULE}@v${version}/${path}`;
    const file = join(path === 'LICENSE' ? source : folder, path);
    zip.addBuffer(readFileSync(file), name, { mtime: new Date(epoch * 1000), mode: 0o100644 });
  }
  zip.end();
  await pipeline(zip.outputStream, createWriteStream(join(out, `gpd-consent-go-v${version}.zip`)));
}

/** Creates jar, sources, documentation and pom. */
function createJava(place: Place): void {
  const folder = copySdk(place, 'java');
  const time = `-Dproject.build.outputTimestamp=${new Date(place.epoch * 1000).toISOString()}`;
  const mavenArguments = ['--quiet', '--batch-mode', '-Prelease', '-Dmaven.test.skip=true', time, 'package'];
  run(folder, fixedEnvironment(place.epoch), 'mvn', ...mavenArguments);
  const name = `consent-${place.version}`;
  for (const kind of ['', '-sources', '-javadoc'])
    copyFileSync(join(folder, 'target', `${name}${kind}.jar`), join(place.out, `gpd-${name}${kind}.jar`));
  copyFileSync(join(folder, 'pom.xml'), join(place.out, `gpd-${name}.pom`));
}

export async function createSdks(place: Place): Promise<void> {
  for (const folder of ['sdk/node', 'sdk/browser', 'sdk/react']) createNpmPackage(place, folder);
  createPython(place);
  await createGo(place);
  createJava(place);
}
