#!/usr/bin/env node
// Builds the browser agent: one ES module, one classic script, one worker and the types of the public surface.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const source = join(root, 'src', 'agent');

/** The oldest browsers that have Object.hasOwn, a static import.meta and a promise-based OfflineAudioContext. */
const TARGET = ['chrome100', 'firefox100', 'safari15.4'];

/** Source file, output file and format of each script. */
const BUNDLES = [
  { entry: 'agent.ts', out: 'agent.js', format: /** @type {const} */ ('esm') },
  { entry: 'classic.ts', out: 'agent.classic.js', format: /** @type {const} */ ('iife') },
  { entry: 'my-data/main.ts', out: 'my-data.js', format: /** @type {const} */ ('esm') },
  { entry: 'passkey.ts', out: 'agent-passkey.js', format: /** @type {const} */ ('esm') },
  { entry: 'worker.ts', out: 'agent-worker.js', format: /** @type {const} */ ('iife') },
];

const SURFACE = `
/** The gate, then key and signals side by side, then seal and send. Never throws: a refusal is a value. */
export declare function identify(options: IdentifyOptions): Promise<IdentifyResult>;

/**
 * Seals the signals of the last verdict again, with what \`observeInput\` saw since: for a login or a checkout. The consent is read
 * anew, and the earlier decision names the later one (\`supersededBy\`).
 */
export declare function update(options?: UpdateOptions): Promise<IdentifyResult>;

/** The signals without sending them; null when the gate refuses. */
export declare function collect(
  consent: ConsentReceipt | null,
  workerUrl?: string | null,
): Promise<CollectedSignals | null>;

/**
 * Counts pointer moves, times the last press and notes whether a mouse pressed without force or by a clock of its own, and whether
 * the page counted as used before any press, until \`identify\` or \`update\`; no coordinates, no keys, and not the press that gave
 * the consent.
 * Returns a function that stops and forgets, or null when the gate refuses.
 */
export declare function observeInput(consent: ConsentReceipt | null): (() => void) | null;

/** The plaintext of a bundle, with a nonce and a time of its own on every call. */
export declare function makePlaintext(consent: ConsentReceipt, signals: CollectedSignals): Uint8Array<ArrayBuffer>;

/** Seals bytes to a tenant's public key; rejects when that is not a point of P-256. */
export declare function sealBundle(recipient: Recipient, plaintext: Uint8Array<ArrayBuffer>): Promise<SealedBundle>;
`;

/** Only a page that loads a script of gpd has the name `gpd`. */
const PAGE = `
declare global {
  /** What the scripts of gpd put on the page: the banner \`consent\`, the classic agent \`agent\`. */
  interface GpdPage {
    readonly agent?: {
      readonly identify: typeof identify;
      readonly update: typeof update;
      readonly collect: typeof collect;
      readonly observeInput: typeof observeInput;
      readonly makePlaintext: typeof makePlaintext;
      readonly sealBundle: typeof sealBundle;
    };
  }
  interface Window {
    gpd?: GpdPage;
  }
  var gpd: GpdPage | undefined;
}
`;

/** @returns {Promise<string>} the declarations of what a page may call */
export const agentTypes = async () => (await readFile(join(source, 'types.ts'), 'utf8')) + SURFACE + PAGE;

/**
 * @param {{ outDir: string }} options where agent.js, agent.classic.js, agent-worker.js and agent.d.ts are written
 */
export async function buildAgent({ outDir }) {
  await mkdir(outDir, { recursive: true });
  for (const { entry, out, format } of BUNDLES) {
    await build({
      entryPoints: [join(source, entry)],
      outfile: join(outDir, out),
      bundle: true,
      minify: true,
      charset: 'utf8',
      format,
      target: TARGET,
      legalComments: 'none',
      logLevel: 'warning',
      tsconfigRaw: '{}',
    });
  }
  await writeFile(join(outDir, 'agent.d.ts'), await agentTypes());
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  await buildAgent({ outDir: join(root, 'dist', 'agent') });
}
