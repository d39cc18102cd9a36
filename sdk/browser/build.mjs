// Builds the package from the sources of the agent and the banner: modules that a bundler can shake, and their types.
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { agentTypes } from '../../bin/build-agent.mjs';
import { bannerLanguages, bannerTypes, styleSheets, TARGET } from '../../bin/build-banner.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const source = resolve(here, '..', '..', 'src');

/** A bundler drops whole files that a page imports nothing from, so the index only names what is elsewhere. */
const INDEX = `export { collect, identify, observeInput, update } from './agent.js';
export { makePlaintext, sealBundle } from './seal.js';
`;

const START = `
/** Starts the banner once per page, as \`window.gpd.consent\`. While a server renders the page, nothing is asked and nothing granted. */
export declare function startBanner(options: BannerOptions): GpdConsent;
`;

/** @param {{ outDir: string }} options */
export async function buildBrowser({ outDir }) {
  await rm(outDir, { recursive: true, force: true });
  await mkdir(outDir, { recursive: true });
  const shared = { bundle: true, charset: /** @type {const} */ ('utf8'), target: TARGET, tsconfigRaw: '{}' };
  await build({
    ...shared,
    entryPoints: {
      agent: join(source, 'agent', 'module.ts'),
      seal: join(source, 'agent', 'seal.ts'),
      banner: join(source, 'banner', 'module.ts'),
    },
    outdir: outDir,
    format: 'esm',
    splitting: true,
    minifySyntax: true,
    plugins: [styleSheets],
    define: { LANGUAGES: JSON.stringify((await bannerLanguages()).join(' ')) },
  });
  const worker = {
    entryPoints: [join(source, 'agent', 'worker.ts')],
    outfile: join(outDir, 'agent-worker.js'),
  };
  await build({ ...shared, ...worker, format: 'iife', minify: true });
  await writeFile(join(outDir, 'index.js'), INDEX);
  await writeFile(join(outDir, 'index.d.ts'), await agentTypes());
  await writeFile(join(outDir, 'banner.d.ts'), (await bannerTypes()) + START);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  await buildBrowser({ outDir: join(here, 'dist') });
