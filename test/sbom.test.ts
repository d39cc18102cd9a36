import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { PROGRAM, tempDir } from './support/command.ts';

const ROOT = dirname(dirname(PROGRAM));

interface Component {
  name: string;
  version: string;
  hashes: { alg: string; content: string }[];
}
interface Sbom {
  metadata: { component: { name: string } };
  components: Component[];
}

const node = (...args: string[]) => spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });

function check(sbom: unknown): { readonly status: number | null; readonly said: string } {
  const file = join(tempDir('sbom'), 'sbom.json');
  writeFileSync(file, JSON.stringify(sbom));
  const ran = node('.ci/sbom.mjs', file);
  return { status: ran.status, said: ran.stdout + ran.stderr };
}

describe('npm run sbom', () => {
  let text: string;
  const readSbom = (): Sbom => JSON.parse(text) as Sbom;
  beforeAll(() => {
    text = node('bin/sbom.mjs').stdout;
  });

  it('names every package of production, and none of development', () => {
    const sbom = readSbom();
    expect(sbom.metadata.component.name).toBe('gpd');
    const names = sbom.components.map(({ name }) => name);
    // `npm sbom --omit dev` loses pg, which a development dependency needs as well.
    for (const name of ['express', 'pg', 'sqlite3', 'ms']) expect(names).toContain(name);
    for (const name of ['vitest', 'typescript', 'playwright-core']) expect(names).not.toContain(name);
    expect(check(sbom)).toMatchObject({ status: 0 });
    expect(text).not.toMatch(/https?:\/\/(?!cyclonedx\.org|gpd\.dev)/);
  });

  it.each<readonly [string, (sbom: Sbom) => unknown, RegExp]>([
    ['lacks one', ({ components }) => components.splice(5, 1), /is installed and not in the SBOM/],
    [
      'has another version',
      ({ components }) => Object.assign(components[7] ?? {}, { version: '0.0.0' }),
      /@0\.0\.0 is in the SBOM and not installed/,
    ],
    [
      'has another hash',
      ({ components }) => Object.assign(components[9]?.hashes[0] ?? {}, { content: '00' }),
      /another hash/,
    ],
  ])('the check finds one that %s', (_what, change, words) => {
    const sbom = readSbom();
    change(sbom);
    const { status, said: output } = check(sbom);
    expect(status).toBe(1);
    expect(output).toMatch(words);
  });
});
