import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newFolder } from './artefacts.ts';
import { type Place, run, say, type Variables } from './run.ts';
import { GO_MODULE } from './sdks.ts';
import { withServer } from './smoke-server.ts';

/** Installs each SDK from its package and runs its example, which asks, grants and withdraws on a running gpd. */

type Try = (place: Place, env: Variables) => string;

/** @throws {Error} unless exactly one artefact has such a name */
function findArtefact({ out }: Place, pattern: RegExp): string {
  const [name = '', ...furtherNames] = readdirSync(out).filter((one) => pattern.test(one));
  if (name === '' || furtherNames.length > 0) throw new Error(`not one artefact is ${pattern}`);
  return join(out, name);
}

const tryNode: Try = (place, env) => {
  const folder = newFolder(place, 'node-sdk');
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
  run(folder, env, 'npm', 'install', '--silent', findArtefact(place, /^gpd-consent-[\d.]+\.tgz$/));
  copyFileSync(join(place.source, 'sdk/node/examples/check.mjs'), join(folder, 'check.mjs'));
  return run(folder, env, 'node', 'check.mjs');
};

const tryPython =
  (pattern: RegExp): Try =>
  (place, env) => {
    const folder = newFolder(place, 'python-sdk');
    run(folder, env, 'python3', '-m', 'venv', '.');
    run(folder, env, 'bin/pip', 'install', '--quiet', findArtefact(place, pattern));
    return run(folder, env, 'bin/python', join(place.source, 'sdk/python/examples/check.py'));
  };

/** Installs from a folder with the layout of a module proxy (go.dev/ref/mod#goproxy-protocol). */
const tryGo: Try = (place, env) => {
  const [folder, proxy] = [newFolder(place, 'go-sdk'), newFolder(place, 'goproxy')];
  const [module, name] = [join(proxy, GO_MODULE, '@v'), `v${place.version}`];
  mkdirSync(module, { recursive: true });
  copyFileSync(findArtefact(place, /^gpd-consent-go-.*\.zip$/), join(module, `${name}.zip`));
  copyFileSync(join(place.source, 'sdk/go/go.mod'), join(module, `${name}.mod`));
  writeFileSync(join(module, `${name}.info`), JSON.stringify({ Version: name }));
  const go = {
    ...env,
    GOPROXY: `file://${proxy}`,
    GONOSUMDB: '*',
    GOFLAGS: '-modcacherw',
    GOMODCACHE: join(proxy, 'cache'),
  };
  run(folder, go, 'go', 'mod', 'init', 'shop.example/mail');
  run(folder, go, 'go', 'get', `${GO_MODULE}@${name}`);
  copyFileSync(join(place.source, 'sdk/go/examples/check/main.go'), join(folder, 'main.go'));
  return run(folder, go, 'go', 'run', '.');
};

const tryJava: Try = (place, env) => {
  const folder = newFolder(place, 'java-sdk');
  const jars = join(folder, 'classpath');
  const mavenArguments = ['--quiet', '--batch-mode', 'dependency:build-classpath', '-DincludeScope=runtime'];
  const pom = findArtefact(place, /\.pom$/);
  run(folder, env, 'mvn', ...mavenArguments, `-Dmdep.outputFile=${jars}`, '--file', pom);
  const jar = findArtefact(place, /^gpd-consent-[\d.]+\.jar$/);
  const command = 'java -cp "$1:$(cat "$2")" "$3"';
  const example = join(place.source, 'sdk/java/examples/CheckConsent.java');
  return run(folder, env, 'sh', '-c', command, 'sh', jar, jars, example);
};

const TRIES: readonly (readonly [string, Try])[] = [
  ['Node SDK', tryNode],
  ['Python SDK, wheel', tryPython(/\.whl$/)],
  ['Python SDK, source distribution', tryPython(/^gpd_consent-.*\.tar\.gz$/)],
  ['Go SDK', tryGo],
  ['Java SDK', tryJava],
];

export async function trySdks(place: Place): Promise<void> {
  const gpd = [process.execPath, join(place.source, 'bin/gpd')];
  const path = { PATH: process.env['PATH'] ?? '' };
  await withServer<{ url: string }>(place, [...gpd, 'serve'], path, async ({ url }, env) => {
    const create = [...gpd.slice(1), 'apikeys', 'create', 'shop', '--scope', 'secret', '--name', 'release'];
    const key = run(place.source, env, process.execPath, ...create);
    for (const [name, tryOut] of TRIES) {
      const output = tryOut(place, { GPD_CONSENT_URL: url, GPD_CONSENT_KEY: key });
      if (!/granted: true\nwithdrawn: false$/i.test(output)) throw new Error(`${name} said: ${output}`);
      say(`ok: ${name}`);
    }
  });
}
