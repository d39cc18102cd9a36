import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildAgent } from '../../bin/build-agent.mjs';

const MAX_GZIP_BYTES = 9.5 * 1024;
const SCRIPTS = ['agent.js', 'agent.classic.js', 'agent-worker.js', 'agent-passkey.js', 'my-data.js'];
/** The half that asks for a passkey remembers that this browser has one. */
const STORAGE: Readonly<Record<string, readonly string[]>> = {
  'my-data.js': ['localStorage.getItem'],
  'agent-passkey.js': ['localStorage.setItem', 'localStorage.removeItem', 'localStorage.getItem'],
};
/** The page about my data has the agent in it. */
const maxOf = (name: string): number =>
  name === 'agent-passkey.js' ? 2048 : name === 'my-data.js' ? 13_952 : MAX_GZIP_BYTES;

const SURFACE = ['collect', 'identify', 'makePlaintext', 'observeInput', 'sealBundle', 'update'];

/** A strict Content-Security-Policy refuses these, or they would let somebody else in. */
const FORBIDDEN: readonly (readonly [what: string, pattern: RegExp])[] = [
  ['a call of eval', /\beval\s*\(/],
  ['new Function', /\bFunction\s*\((?!\))/],
  ['a blob', /blob:|createObjectURL|new Blob/],
  ['a data address', /data:/],
  ['a style attribute or element', /style\s*=|setAttribute\(["'`]style|createElement\(["'`]style/],
  ['markup from text', /innerHTML|outerHTML|insertAdjacentHTML|document\.write/],
  ['another host', /https?:\/\//],
  ['a timer with text', /set(?:Timeout|Interval)\(["'`]/],
];

describe('the built agent', () => {
  let dir: string;
  const text = (name: string): Promise<string> => readFile(join(dir, name), 'utf8');

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'gpd-agent-'));
    await buildAgent({ outDir: dir });
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  it.each(SCRIPTS)('%s is at most so many bytes of gzip', async (name) => {
    const size = gzipSync(await text(name), { level: 9 }).length;
    console.log(`${name}: ${size} bytes of gzip`);
    expect(size).toBeLessThanOrEqual(maxOf(name));
  });

  describe.each(SCRIPTS)('%s', (name) => {
    it.each(FORBIDDEN)('has no %s', async (kind, pattern) => {
      // The page about my data saves a file that it has fetched, which no policy of a page refuses.
      const isDownload = name === 'my-data.js' && kind === 'a blob';
      const found = (await text(name)).match(pattern)?.[0] ?? null;
      expect(found).toBe(isDownload ? 'createObjectURL' : null);
    });

    it('has no cookie, and no storage but what is said above', async () => {
      const uses =
        (await text(name)).match(/(?:local|session)Storage\.?\w*|indexedDB|document\.cookie/g) ?? [];
      expect(uses).toEqual(STORAGE[name] ?? []);
    });
  });

  it('carries no schema library and nothing of Node', async () => {
    const source = (await Promise.all(SCRIPTS.map(text))).join('\n');
    expect(source).not.toMatch(/node:|ZodError|Buffer\.from|require\(/);
  });

  it('exports the documented surface and no default', async () => {
    const source = await text('agent.js');
    const exported = /export\{([^}]*)\}/.exec(source)?.[1] ?? '';
    const names = exported.split(',').map((item) => item.replace(/^.* as /, ''));
    const types = await text('agent.d.ts');
    const declared = [...types.matchAll(/^export declare function (\w+)/gm)].map((match) => match[1]);
    expect(new Set(names)).toEqual(new Set(SURFACE));
    expect(new Set(declared)).toEqual(new Set(SURFACE));
  });

  it('gives types that a strict integrator can compile against', async () => {
    const page = `import { identify, type IdentifyResult } from './agent.js';
      export async function visit(): Promise<string | null> {
        const result: IdentifyResult = await identify({ kid: 'shop', consent: async () => null });
        if (result.sent) return result.response.visitorId;
        return result.reason === 'unavailable' ? result.cause : result.message;
      }`;
    await writeFile(join(dir, 'page.ts'), page);
    const flags = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--target', 'es2022'];
    const modules = ['--module', 'esnext', '--moduleResolution', 'bundler', '--lib', 'es2023,dom'];
    const tsc = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url));
    const args = [tsc, ...flags, ...modules, '--types', '', '--ignoreConfig', join(dir, 'page.ts')];
    const { stdout, status } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect({ stdout, status }).toEqual({ stdout: '', status: 0 });
  });

  it('is the same bytes when it is built again', async () => {
    const again = await mkdtemp(join(tmpdir(), 'gpd-agent-'));
    await buildAgent({ outDir: again });
    for (const name of [...SCRIPTS, 'agent.d.ts'])
      expect(await readFile(join(again, name), 'utf8')).toBe(await text(name));
    await rm(again, { recursive: true });
  });
});
