import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { transformSync } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { buildSteps, INSTALL, isInstalled, nodeProblem, npmCommand } from '../bin/bootstrap.mjs';

const file = fileURLToPath(new URL('../bin/bootstrap.mjs', import.meta.url));
const source = readFileSync(file, 'utf8');

describe('the version of Node', () => {
  it.each([
    ['20.19.0', true],
    ['22.1.0', true],
    ['100.0.0', true],
    ['20.18.3', false],
    ['9.0.0', false],
  ])('%s is taken: %s', (version, isTaken) => {
    const problem = nodeProblem(version);
    if (isTaken) expect(problem).toBeNull();
    else expect(problem).toContain(`needs Node 20.19 or newer, and this is ${version}`);
  });

  it('agrees with package.json', () => {
    const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
    expect(manifest.engines.node).toBe('>=20.19.0');
  });
});

describe('the syntax that an old Node must parse before it can print an error', () => {
  const text = (target: string): string => transformSync(source, { target, format: 'esm' }).code;

  it('is that of Node 12', () => {
    expect(text('node12.22')).toBe(text('esnext'));
  });

  it('imports nothing by the node: scheme and nothing from node_modules', () => {
    const imported = [...source.matchAll(/^import .* from '([^']+)';$/gm)].map((match) => match[1]);
    expect(imported).toEqual(['child_process', 'fs', 'path', 'url']);
  });
});

describe('whether node_modules is what package-lock.json names', () => {
  const zod = { version: '4.6.7', integrity: 'sha512-a' };
  const lock = { packages: { '': {}, 'node_modules/zod': zod, 'node_modules/mac': { optional: true } } };
  const record = (found: object): object => ({ packages: { 'node_modules/zod': found } });

  it('takes a complete one, without the binaries of other platforms', () => {
    expect(isInstalled(lock, record(zod))).toBe(true);
  });

  it('sees that nothing is there, that a package is missing, and that one is another', () => {
    expect(isInstalled(lock, null)).toBe(false);
    expect(isInstalled(lock, { packages: {} })).toBe(false);
    expect(isInstalled(lock, record({ ...zod, version: '4.6.6' }))).toBe(false);
    expect(isInstalled(lock, record({ ...zod, integrity: 'sha512-b' }))).toBe(false);
  });
});

describe('npm', () => {
  it('is the one that runs this script, or looked for on PATH, on Windows by the shell', () => {
    const running = npmCommand('/lib/npm/bin/npm-cli.js', 'linux', ['ci']);
    expect(running).toMatchObject({ file: process.execPath, args: ['/lib/npm/bin/npm-cli.js', 'ci'] });
    expect(npmCommand('/lib/yarn.js', 'linux', [])).toMatchObject({ file: 'npm', shell: false });
    expect(npmCommand(undefined, 'win32', [])).toMatchObject({ file: 'npm', shell: true });
  });

  it('installs the tools too where NODE_ENV says production, and runs the scripts that package.json names', () => {
    const { allowScripts } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
    expect(INSTALL).toEqual(expect.arrayContaining(['--include=dev', '--ignore-scripts']));
    expect(allowScripts).toMatchObject({ sqlite3: false, esbuild: true });
  });
});

it('only the demo is built without a check of all types', () => {
  const compiles = (task: string): boolean => buildSteps(task).some((step) => step.includes('--noCheck'));
  expect(['demo', 'build', 'test', 'sdk'].filter(compiles)).toEqual(['demo']);
});

it('answers an unknown command with its usage and exit code 2', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [file, 'deploy'], { encoding: 'utf8' });
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toContain('usage: node bin/bootstrap.mjs demo|build|test|sdk');
});
