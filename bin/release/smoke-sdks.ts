import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newFolder } from './artefacts.ts';
import { type Place, run, say, type Variables } from './run.ts';
import { withServer } from './smoke-server.ts';

/**
 * Installs each SDK from the files of the release with the commands of its README, and runs its example, which asks, grants and withdraws on
 * a running gpd. The packages for pages are compiled and bundled.
 */

type Try = (place: Place, env: Variables) => string;

/** @throws {Error} unless exactly one artefact has such a name */
function findArtefact({ out }: Place, pattern: RegExp): string {
  const [name = '', ...furtherNames] = readdirSync(out).filter((one) => pattern.test(one));
  if (name === '' || furtherNames.length > 0) throw new Error(`not one artefact is ${pattern}`);
  return join(out, name);
}

/**
 * Returns what the README of an SDK says, with the folder of the release for PATH.
 * @throws {Error} unless it says something of this kind
 */
function readme({ source, out }: Place, sdk: string, pattern: RegExp): string {
  const found = pattern.exec(readFileSync(join(source, 'sdk', sdk, 'README.md'), 'utf8'))?.[1];
  if (found === undefined) throw new Error(`sdk/${sdk}/README.md has nothing like ${pattern}`);
  return found.replaceAll('PATH/', `${out}/`);
}

const tryNode: Try = (place, env) => {
  const folder = newFolder(place, 'node-sdk');
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
  run(folder, env, 'sh', '-ec', readme(place, 'node', /`(npm install PATH\/[^`]+)`/));
  copyFileSync(join(place.source, 'sdk/node/examples/check.mjs'), join(folder, 'check.mjs'));
  return run(folder, env, 'node', 'check.mjs');
};

const tryPython =
  (installOf: (place: Place) => string): Try =>
  (place, env) => {
    const folder = newFolder(place, 'python-sdk');
    run(folder, env, 'python3', '-m', 'venv', '.');
    run(folder, env, 'sh', '-ec', `. bin/activate\n${installOf(place)}`);
    return run(folder, env, 'bin/python', join(place.source, 'sdk/python/examples/check.py'));
  };

const tryGo: Try = (place, env) => {
  const folder = newFolder(place, 'go-sdk');
  copyFileSync(
    findArtefact(place, /^gpd-consent-go-.*\.zip$/),
    join(folder, `gpd-consent-go-v${place.version}.zip`),
  );
  const edits = readme(place, 'go', /^```sh\n(.*?)^```$/ms).replace('/path/to/gpd/sdk/go', './consent-go');
  run(folder, env, 'sh', '-ec', `${readme(place, 'go', /`(unzip [^`]+)`/)}\n${edits}`);
  copyFileSync(join(place.source, 'sdk/go/examples/check/main.go'), join(folder, 'main.go'));
  return run(folder, env, 'go', 'run', '.');
};

/** Installs into a Maven repository that only this project uses, which depends on the SDK as the README says. */
const tryJava: Try = (place, env) => {
  const [folder, repository] = [newFolder(place, 'java-sdk'), newFolder(place, 'repository')];
  const maven = `--quiet --batch-mode "-Dmaven.repo.local=${repository}"`;
  run(place.out, env, 'sh', '-ec', `${readme(place, 'java', /`(mvn install:install-file [^`]+)`/)} ${maven}`);
  const project = '<groupId>shop.example</groupId><artifactId>mail</artifactId><version>1</version>';
  const dependency = readme(place, 'java', /^```xml\n(.*?)^```$/ms);
  writeFileSync(
    join(folder, 'pom.xml'),
    `<project><modelVersion>4.0.0</modelVersion>${project}<dependencies>${dependency}</dependencies></project>\n`,
  );
  run(folder, env, 'sh', '-ec', `mvn dependency:build-classpath ${maven} -Dmdep.outputFile=classpath`);
  const example = join(place.source, 'sdk/java/examples/CheckConsent.java');
  return run(folder, env, 'java', '-cp', readFileSync(join(folder, 'classpath'), 'utf8'), example);
};

const PAGE = `
import { identify } from '@gpd/browser';
import { startBanner } from '@gpd/browser/banner';
import { ConsentProvider, Gate } from '@gpd/react';

const server = 'https://id.shop.example';
export const options = { key: 'gpd_pk_x', server };
export const visit = () => identify({ kid: 'shop', endpoint: server, consent: () => startBanner(options).receipt() });
export const page = <ConsentProvider options={options}><Gate purpose="analytics">You are counted.</Gate></ConsentProvider>;
visit().then((result) => console.log(result.sent ? 'sent' : result.reason));
`;

/** Compiles, bundles and runs a page of both packages on a server, where nothing is sent. */
function tryPages(place: Place): void {
  const folder = newFolder(place, 'pages');
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
  run(folder, {}, 'sh', '-ec', readme(place, 'browser', /`(npm install PATH\/[^`]+)`/));
  run(folder, {}, 'sh', '-ec', `${readme(place, 'react', /`(npm install PATH\/[^`]+)`/)} react @types/react`);
  writeFileSync(join(folder, 'page.tsx'), PAGE);
  const tools = join(place.source, 'node_modules');
  const strict =
    '--strict --noEmit --jsx react-jsx --module esnext --moduleResolution bundler --target es2022';
  run(
    folder,
    {},
    'node',
    join(tools, 'typescript/bin/tsc'),
    ...strict.split(' '),
    '--types',
    'react',
    'page.tsx',
  );
  const bundle = '--bundle --format=esm --platform=node --jsx=automatic --outfile=page.mjs page.tsx';
  run(folder, {}, 'node', join(tools, 'esbuild/bin/esbuild'), ...bundle.split(' '));
  const output = run(folder, {}, 'node', 'page.mjs');
  if (output !== 'unavailable') throw new Error(`the page said: ${output}`);
  say('ok: packages for pages');
}

const TRIES: readonly (readonly [string, Try])[] = [
  ['Node SDK', tryNode],
  [
    'Python SDK, wheel',
    tryPython((place) => readme(place, 'python', /`(pip install 'PATH\/gpd_consent[^`]+)`/)),
  ],
  [
    'Python SDK, source distribution',
    tryPython((place) => `pip install '${findArtefact(place, /^gpd_consent-.*\.tar\.gz$/)}'`),
  ],
  ['Go SDK', tryGo],
  ['Java SDK', tryJava],
];

export async function trySdks(place: Place): Promise<void> {
  tryPages(place);
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
