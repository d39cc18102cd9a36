import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { beforeAll, expect, it } from 'vitest';
import { tempDir } from './support/command.ts';

/** The package `@gpd/browser`, as an empty project gets it. */

const path = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url));
const KB = 1024;

let project: string;
beforeAll(() => {
  project = tempDir('browser-package');
  const packed = run('npm', ['pack', '--silent', '--pack-destination', project], path('sdk/browser'));
  expect(packed).toEqual({ status: 0, output: expect.stringContaining('gpd-browser-') });
  const folder = join(project, 'node_modules', '@gpd', 'browser');
  mkdirSync(folder, { recursive: true });
  const [archive = ''] = readdirSync(project).filter((name) => name.endsWith('.tgz'));
  expect(run('tar', ['-xzf', archive, '--strip-components=1', '-C', folder]).status).toBe(0);
  writeFileSync(join(project, 'package.json'), '{ "type": "module", "private": true }');
});

function run(program: string, words: readonly string[], cwd = project) {
  const { status, stdout, stderr } = spawnSync(program, words, { cwd, encoding: 'utf8' });
  return { status, output: `${stdout}${stderr}` };
}

async function bundled(source: string): Promise<string> {
  writeFileSync(join(project, 'entry.js'), source);
  const { outputFiles, metafile } = await build({
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    logLevel: 'silent',
    entryPoints: [join(project, 'entry.js')],
    outdir: project,
    splitting: true,
    metafile: true,
  });
  // A page imports the entry at once, and the chunks that it names.
  const outputs = Object.values(metafile.outputs);
  const [entry] = outputs.filter(({ entryPoint }) => entryPoint?.endsWith('entry.js'));
  const chunks = entry?.imports.filter(({ kind }) => kind === 'import-statement') ?? [];
  const names = new Set(['entry.js', ...chunks.map(({ path: chunk }) => basename(chunk))]);
  return outputFiles
    .filter(({ path: file }) => names.has(basename(file)))
    .map(({ text }) => text)
    .join('');
}
const sizeOf = async (text: string): Promise<number> => gzipSync(await bundled(text), { level: 9 }).length;

it('the package has modules, types, worker and licence, and no source', () => {
  const files = readdirSync(join(project, 'node_modules/@gpd/browser'), { recursive: true }).map(String);
  for (const name of ['index.js', 'index.d.ts', 'banner.js', 'banner.d.ts', 'agent-worker.js'])
    expect(files).toContain(join('dist', name));
  expect(files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'package.json']));
  expect(files.filter((name) => /(?<!\.d)\.ts$|\.mjs$/.test(name))).toEqual([]);
});

it('a strict project compiles against it, window.gpd included', () => {
  writeFileSync(
    join(project, 'page.ts'),
    `import { identify, sealBundle, type IdentifyResult, type SealedBundle } from '@gpd/browser';
     import { startBanner, type GpdConsent } from '@gpd/browser/banner';
     const consent: GpdConsent = startBanner({ key: 'gpd_pk_x', server: 'https://id.shop.example' });
     export const visit = (): Promise<IdentifyResult> =>
       identify({ kid: 'shop', endpoint: 'https://id.shop.example', consent: () => consent.receipt() });
     export const seal = (): Promise<SealedBundle> => sealBundle({ kid: 'shop', publicKey: '' }, new Uint8Array());
     export const granted: readonly string[] | undefined = window.gpd?.consent?.state().granted;
     export const other = gpd?.agent?.identify;
     // @ts-expect-error a banner needs a key
     startBanner({ server: 'https://id.shop.example' });`,
  );
  const flags = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--target', 'es2022', '--types', ''];
  for (const modules of [
    ['esnext', 'bundler'],
    ['nodenext', 'nodenext'],
  ] as const) {
    const kind = ['--module', modules[0], '--moduleResolution', modules[1], '--lib', 'es2023,dom'];
    const tsc = path('node_modules/typescript/bin/tsc');
    const words = [tsc, ...flags, ...kind, '--ignoreConfig', 'page.ts'];
    expect(run(process.execPath, words)).toEqual({ status: 0, output: '' });
  }
});

it('on a server it can be imported, answers, and grants nothing', () => {
  writeFileSync(
    join(project, 'server.js'),
    `import { collect, identify, observeInput, sealBundle, update } from '@gpd/browser';
     import { startBanner } from '@gpd/browser/banner';
     const receipt = { purposes: ['device-identification'], gpc: false, version: 1, issuedAt: 1 };
     const consent = startBanner({ key: 'gpd_pk_x', server: 'https://id.shop.example' });
     const same = consent.state() === startBanner({ key: 'gpd_pk_x', server: 'https://id.shop.example' }).state();
     const keys = await crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, true, ['deriveBits']);
     const point = Buffer.from(await crypto.subtle.exportKey('raw', keys.publicKey)).toString('base64');
     const sealed = await sealBundle({ kid: 'shop', publicKey: point }, new Uint8Array(3));
     console.log(JSON.stringify({
       identify: (await identify({ kid: 'shop', consent: receipt })).cause,
       update: (await update()).cause,
       collected: await collect(receipt),
       observed: observeInput(receipt),
       phase: (await consent.ready).phase,
       purposes: (await consent.receipt()).purposes,
       withdrawn: (await consent.withdraw()).outcome,
       same,
       sealed: Object.keys(sealed),
       globals: 'gpd' in globalThis,
     }));`,
  );
  const { status, output } = run(process.execPath, ['server.js']);
  expect({ status, ...(JSON.parse(output) as object) }).toEqual({
    status: 0,
    identify: 'no-browser',
    update: 'nothing-to-update',
    collected: null,
    observed: null,
    phase: 'loading',
    purposes: [],
    withdrawn: 'failed',
    same: true,
    sealed: ['kid', 'epk', 'iv', 'ct'],
    globals: false,
  });
});

it('a page pays for what it imports', async () => {
  const sizes = {
    nothing: await sizeOf("import '@gpd/browser'; import '@gpd/browser/banner';"),
    sealBundle: await sizeOf("export { sealBundle } from '@gpd/browser';"),
    identify: await sizeOf("export { identify } from '@gpd/browser';"),
    startBanner: await sizeOf("export { startBanner } from '@gpd/browser/banner';"),
  };
  process.stderr.write(`@gpd/browser, bytes of gzip: ${JSON.stringify(sizes)}\n`);
  expect(sizes.nothing).toBeLessThan(64);
  expect(sizes.sealBundle).toBeLessThanOrEqual(KB);
  expect(sizes.identify).toBeLessThanOrEqual(9 * KB);
  expect(sizes.startBanner).toBeLessThanOrEqual(17.5 * KB);
  expect(await bundled("export { sealBundle } from '@gpd/browser';")).not.toContain('pointerdown');
});
