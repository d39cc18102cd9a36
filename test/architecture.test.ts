import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { architectureFaults, longFunctions, RANKS, roomOf, type Sources } from './support/architecture.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

function readSources(): Sources {
  const names = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  const files = names
    .map((name) => `src/${name.replaceAll('\\', '/')}`)
    .filter((name) => /\.tsx?$/.test(name));
  return new Map(files.map((file) => [file, readFileSync(join(root, file), 'utf8')]));
}

describe('src/', () => {
  const sources = readSources();

  it('is read whole', () => {
    const rooms = new Set([...sources.keys()].map(roomOf));
    expect(rooms).toEqual(new Set([...RANKS.flat(), 'agent', 'banner']));
    expect(sources.size).toBeGreaterThan(100);
  });

  it('keeps every rule: ranks, roles, packages, purity, queries, no circle, no default export, 400 lines', () => {
    expect(architectureFaults(sources)).toEqual([]);
  });

  it('has no function longer than a screen', () => {
    expect(longFunctions(sources)).toEqual([]);
  });
});
