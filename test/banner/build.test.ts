import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildBanner } from '../../bin/build-banner.mjs';
import { words as english } from '../../src/banner/locales/en.ts';

const KB = 1024;
const SCRIPTS = ['embed.js', 'extras.js', 'pinned.js'];
/** Words that are spelt as in English. */
const SAME_IN: Readonly<Record<string, readonly string[]>> = {
  'ro.json': ['accept'],
};
let dir: string;
let files: string[];
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'gpd-banner-'));
  await buildBanner({ outDir: dir });
  files = await readdir(dir);
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const read = (name: string): Promise<string> => readFile(join(dir, name), 'utf8');
const gzipped = async (name: string): Promise<number> => gzipSync(await read(name), { level: 9 }).length;
const languages = (): string[] => files.filter((name) => /^[a-z]{2}\.json$/.test(name));

describe('the built banner', () => {
  it('has at most 16.5 KB gzip with English, and a language at most 1.5 KB', async () => {
    const [script = 0, extras = 0, pinned = 0] = await Promise.all(SCRIPTS.map(gzipped));
    const sizes = await Promise.all(languages().map(gzipped));
    process.stderr.write(
      `banner: ${script} bytes of gzip with English, ${extras} of extras, ${pinned} in one; a language ${Math.min(...sizes)} to ${Math.max(...sizes)}\n`,
    );
    expect(script).toBeLessThanOrEqual(16.5 * KB);
    expect(extras).toBeLessThanOrEqual(5 * KB);
    expect(pinned).toBeLessThanOrEqual(20 * KB);
    expect(sizes).toHaveLength(25);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1.5 * KB);
  });

  it('is the same bytes when it is built again, and names its version once', async () => {
    const again = await mkdtemp(join(tmpdir(), 'gpd-banner-'));
    await buildBanner({ outDir: again });
    for (const name of files) expect(await readFile(join(again, name), 'utf8')).toBe(await read(name));
    await rm(again, { recursive: true });
    const { version } = JSON.parse(await read('manifest.json')) as { version: string };
    for (const name of ['embed.js', 'pinned.js']) expect((await read(name)).split(version)).toHaveLength(2);
    expect(version).toMatch(/^[0-9a-f]{16}$/);
  });

  it.each(SCRIPTS)('%s evaluates nothing, writes no markup and names no other server', async (name) => {
    const script = await read(name);
    expect(script).not.toMatch(
      /\beval\(|new Function|innerHTML|outerHTML|insertAdjacentHTML|document\.write|https?:\/\//,
    );
  });

  it('has types that stand alone', async () => {
    const types = await read('embed.d.ts');
    expect(types).not.toMatch(/^import /m);
    expect(types).toContain('declare global');
  });
});

describe('every language', () => {
  const placeholders = (text: string): string[] => (text.match(/\{\w+\}/g) ?? []).sort();

  it('says everything, fills in the same, and leaves nothing in English', async () => {
    for (const name of languages().filter((one) => one !== 'en.json')) {
      const words = JSON.parse(await read(name)) as Record<string, string>;
      expect([name, Object.keys(words).sort()]).toEqual([name, Object.keys(english).sort()]);
      for (const [key, text] of Object.entries(english)) {
        expect([name, key, placeholders(words[key] ?? '')]).toEqual([name, key, placeholders(text)]);
        expect([name, key, (words[key] ?? '').trim()]).toEqual([name, key, words[key]]);
      }
      const equalTexts = Object.keys(english).filter(
        (key) => words[key] === english[key as keyof typeof english],
      );
      expect([name, equalTexts]).toEqual([name, SAME_IN[name] ?? []]);
      expect([name, words['gpc']?.includes('Global Privacy Control')]).toEqual([name, true]);
    }
  });

  it('accepts and rejects in words of about one length: neither is the loud one', async () => {
    for (const name of languages()) {
      const { accept = '', reject = '' } = JSON.parse(await read(name)) as Record<string, string>;
      expect([name, Math.abs(accept.length - reject.length) <= 5]).toEqual([name, true]);
    }
  });
});
