import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { tempDir } from './support/command.ts';

/** @returns the paths that `npm pack` includes */

const PROJECT = fileURLToPath(new URL('..', import.meta.url));

function packed(folder: string): string[] {
  const words = ['pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=silent'];
  const answer = execFileSync('npm', words, { cwd: folder, encoding: 'utf8' });
  const [{ files } = { files: [] }] = JSON.parse(answer) as { files: { path: string }[] }[];
  return files.map(({ path }) => path);
}

it('npm pack takes what the program and its readers need', () => {
  const files = packed(PROJECT);
  const needed = [
    'bin/gpd',
    'dist/cli/main.js',
    'dist/agent/agent.js',
    'docs/verify.py',
    'views/console/queue.ejs',
  ];
  expect(needed.filter((path) => !files.includes(path))).toEqual([]);
  expect(
    files.filter((path) => /\.(?:deb|tsbuildinfo|tgz)$|^(?:src|test|node_modules|sdk)\//.test(path)),
  ).toEqual([]);
});

it('npm pack leaves packages that were made before, and the notes of the compiler', () => {
  const folder = tempDir('pack');
  copyFileSync(join(PROJECT, 'package.json'), join(folder, 'package.json'));
  const leftovers = [
    'dist/gpd_0.1.0_amd64.deb',
    'dist/gpd-0.1.0-linux-x64.tar.gz',
    'dist/gpd-0.1.0.tgz',
    'dist/release/0.1.0/sbom.json',
    'dist/.tsbuildinfo',
    'dist/agent/.tsbuildinfo',
  ];
  for (const path of ['bin/gpd', 'dist/cli/main.js', ...leftovers]) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), '');
  }
  expect(packed(folder).sort()).toEqual(['bin/gpd', 'dist/cli/main.js', 'package.json']);
});
