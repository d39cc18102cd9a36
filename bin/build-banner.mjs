#!/usr/bin/env node
// Builds the consent banner: the script that contains English, the extras that it fetches when it needs them, both as one script for
// pages that pin its bytes, the same first layer as markup for the server, the words of each language, the types, and a manifest.
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import * as esbuild from 'esbuild';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const source = join(root, 'src', 'banner');

/** The oldest browsers that have adopted style sheets, dialogs, :has and dvh. */
export const TARGET = ['chrome111', 'firefox121', 'safari16.4'];

/** Stands for the version in the script while its hash, which becomes the version, is computed. */
const PLACEHOLDER = '0000000000000000';

/** @type {import('esbuild').Plugin} */
export const styleSheets = {
  name: 'style sheets as text',
  setup(build) {
    build.onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await esbuild.transform(await readFile(path, 'utf8'), {
        loader: 'css',
        minify: true,
        target: TARGET,
      });
      return { contents: `export const css = ${JSON.stringify(code.trim())};`, loader: 'js' };
    });
  },
};

/** @param {string} entry @param {Record<string, string>} define */
async function bundle(entry, define, format = /** @type {'iife' | 'esm'} */ ('iife')) {
  const { outputFiles } = await esbuild.build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    charset: 'utf8',
    format,
    target: TARGET,
    legalComments: 'none',
    logLevel: 'warning',
    tsconfigRaw: '{}',
    plugins: [styleSheets],
    define,
  });
  return outputFiles[0]?.text ?? '';
}

/** English is code, since the script contains it. @param {string} name a file of words @returns {Promise<string>} them as JSON */
async function wordsIn(name) {
  const path = join(source, 'locales', name);
  if (name.endsWith('.json')) return JSON.stringify(JSON.parse(await readFile(path, 'utf8')));
  const { words } = await import(`data:text/javascript,${encodeURIComponent(await bundle(path, {}, 'esm'))}`);
  return JSON.stringify(words);
}

const SURFACE = `
declare global {
  /** What the scripts of gpd put on the page: the banner \`consent\`, the classic agent \`agent\`. */
  interface GpdPage {
    readonly consent?: GpdConsent;
  }
  interface Window {
    gpd?: GpdPage;
  }
  var gpd: GpdPage | undefined;
  interface DocumentEventMap {
    'gpd-consent-ready': CustomEvent<ConsentSnapshot>;
    'gpd-consent-change': CustomEvent<ChangedSnapshot>;
    'gpd-consent-recorded': CustomEvent<RecordedChoices>;
    'gpd-consent-open': CustomEvent<ConsentSnapshot>;
    'gpd-consent-close': CustomEvent<ConsentSnapshot>;
  }
}
`;

/** @returns {Promise<string>} the declarations of what a page may call */
export const bannerTypes = async () => (await readFile(join(source, 'types.ts'), 'utf8')) + SURFACE;

const wordFiles = async () => (await readdir(join(source, 'locales'))).sort();
/** @param {readonly string[]} files */
const languagesOf = (files) => files.map((name) => name.replace(/\.(?:json|ts)$/, ''));

/** @returns {Promise<string[]>} the languages that the banner speaks */
export const bannerLanguages = async () => languagesOf(await wordFiles());

/**
 * @param {{ outDir: string }} options where the scripts, markup.js, embed.d.ts, manifest.json and the languages are written
 */
export async function buildBanner({ outDir }) {
  await mkdir(outDir, { recursive: true });
  const files = await wordFiles();
  const languages = languagesOf(files);
  const words = await Promise.all(files.map(wordsIn));
  const define = { LANGUAGES: JSON.stringify(languages.join(' ')), VERSION: JSON.stringify(PLACEHOLDER) };
  const script = await bundle(join(source, 'embed.ts'), define);
  const extras = await bundle(join(source, 'extras.ts'), {}, 'esm');
  const whole = `/* gpd ${PLACEHOLDER} */${await bundle(join(source, 'pinned.ts'), define)}`;
  const markup = await bundle(join(source, 'view', 'markup.ts'), {}, 'esm');
  const version = createHash('sha256')
    // The log has the hash of the script, and by its version also that of the other files and of every language.
    .update(JSON.stringify([script, extras, whole, words]))
    .digest('hex')
    .slice(0, PLACEHOLDER.length);
  const embed = script.replace(PLACEHOLDER, version);
  const pinned = whole.replace(PLACEHOLDER, version);
  const manifest = {
    version,
    src: `/v1/embed/${version}/embed.js`,
    integrity: `sha384-${createHash('sha384').update(pinned).digest('base64')}`,
    languages,
  };
  await writeFile(join(outDir, 'embed.js'), embed);
  await writeFile(join(outDir, 'extras.js'), extras);
  await writeFile(join(outDir, 'pinned.js'), pinned);
  await writeFile(join(outDir, 'markup.js'), markup);
  await writeFile(join(outDir, 'embed.d.ts'), await bannerTypes());
  await writeFile(join(outDir, 'manifest.json'), JSON.stringify(manifest));
  await Promise.all(languages.map((code, i) => writeFile(join(outDir, `${code}.json`), words[i] ?? '')));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await buildBanner({ outDir: join(root, 'dist', 'banner') });
}
