import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { transformSync } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { installSteps, isInstalled, nodeProblem, npmCommand, tiersFor } from '../bin/bootstrap.mjs';

const file = fileURLToPath(new URL('../bin/bootstrap.mjs', import.meta.url));
const source = readFileSync(file, 'utf8');

describe('the version of Node', () => {
  it.each(['20.19.0', '20.20.2', '21.0.0', '22.1.0', '24.0.0', '100.0.0'])('takes %s', (version) => {
    expect(nodeProblem(version)).toBeNull();
  });

  it.each(['20.18.3', '18.20.0', '12.22.12', '9.0.0'])('refuses %s and says what to do', (version) => {
    expect(nodeProblem(version)).toContain(`needs Node 20.19 or newer, and this is ${version}`);
    expect(nodeProblem(version)).toMatch(/nodejs\.org/);
  });

  it('agrees with package.json', () => {
    const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
    const oldest = String(manifest.engines.node).replace('>=', '');
    expect(nodeProblem(oldest)).toBeNull();
    expect(nodeProblem('20.18.99')).not.toBeNull();
  });
});

describe('the syntax that an old Node must parse before it can print an error', () => {
  const text = (target: string): string => transformSync(source, { target, format: 'esm' }).code;

  it('is that of Node 12', () => {
    expect(text('node12.22')).toBe(text('esnext'));
  });

  it('would be noticed otherwise', () => {
    const newer = (target: string): string => transformSync('a?.b', { target }).code;
    expect(newer('node12.22')).not.toBe(newer('esnext'));
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
  it('is the one that runs this script, when it is npm', () => {
    const { file: program, args } = npmCommand('/lib/npm/bin/npm-cli.js', 'linux', ['ci']);
    expect([program, args]).toEqual([process.execPath, ['/lib/npm/bin/npm-cli.js', 'ci']]);
  });

  it('is looked for on PATH otherwise, on Windows by the shell', () => {
    expect(npmCommand('/lib/yarn.js', 'linux', [])).toMatchObject({ file: 'npm', shell: false });
    expect(npmCommand(undefined, 'win32', [])).toMatchObject({ file: 'npm', shell: true });
  });

  it('installs the tools too where NODE_ENV says production, and runs the scripts that package.json names', () => {
    const { allowScripts } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
    const [install, ...then] = installSteps(['esbuild']);
    expect(install).toEqual(expect.arrayContaining(['--include=dev', '--ignore-scripts']));
    expect(then).toEqual([
      ['run', '--silent', 'preinstall'],
      ['rebuild', '--ignore-scripts=false', 'esbuild'],
    ]);
    expect(allowScripts).toMatchObject({ sqlite3: false, esbuild: true });
  });
});

describe('the command itself', () => {
  it.each([[], ['deploy'], ['--help']])('answers %j with its usage and exit code 2', (...args) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [file, ...args], { encoding: 'utf8' });
    expect({ status, stdout, stderr }).toEqual({
      status: 2,
      stdout: '',
      stderr: 'gpd: usage: node bin/bootstrap.mjs demo|build|test|sdk [arguments]\n',
    });
  });
});

describe('what npm test runs', () => {
  it('is the short tiers, unless a path or a project is named', () => {
    expect(tiersFor(['--reporter=json', '--sequence.seed=1'])).toEqual([
      '--project=app',
      '--project=system',
      '--project=journeys',
    ]);
    expect(tiersFor(['test/http'])).toEqual([]);
    expect(tiersFor(['--project=heavy'])).toEqual([]);
  });
});
