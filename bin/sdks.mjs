#!/usr/bin/env node
// Runs the tests of every SDK whose tool chain is here, and says loudly which it could not run. gpd has to be built.
// With REQUIRE_TOOLS=1 a missing tool chain is a failure.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/**
 * One SDK. Its commands run one after the other in its folder; the tool chain is there when the probe exits 0.
 * @typedef {object} Sdk
 * @property {string} name its folder below sdk/, and what its conformance line says
 * @property {readonly string[]} probe
 * @property {string} needs for people
 * @property {readonly (readonly string[])[]} commands
 */

/** @type {readonly Sdk[]} */
export const SDKS = [
  {
    name: 'node',
    probe: [process.execPath, '--version'],
    needs: 'Node',
    commands: [[process.execPath, join(ROOT, 'node_modules', 'vitest', 'vitest.mjs'), 'run']],
  },
  {
    name: 'python',
    probe: ['python3', '-c', 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))'],
    needs: 'Python 3.11 with venv (apt-get install python3-venv)',
    commands: [
      // With all versions pinned; quick when it is there already.
      ['python3', '-m', 'venv', '.venv'],
      ['.venv/bin/pip', 'install', '--quiet', '--requirement', 'requirements-dev.txt'],
      ['.venv/bin/pip', 'install', '--quiet', '--no-deps', '--no-build-isolation', '--editable', '.'],
      ['.venv/bin/ruff', 'check', '--quiet'],
      ['.venv/bin/ruff', 'format', '--check', '--quiet'],
      ['.venv/bin/mypy', '--no-error-summary'],
      ['.venv/bin/pytest', '--quiet'],
    ],
  },
  {
    name: 'go',
    probe: ['go', 'version'],
    needs: 'Go 1.19 (apt-get install golang-go)',
    commands: [
      ['go', 'vet', './...'],
      // Not from the cache: a run that did not happen tells no count.
      ['go', 'test', '-count=1', './...'],
    ],
  },
  {
    name: 'java',
    probe: ['sh', '-c', 'mvn --version && javac --release 17 --version'],
    needs: 'JDK 17 or later and Maven (apt-get install default-jdk-headless maven)',
    commands: [['mvn', '--quiet', '--batch-mode', 'test']],
  },
];

/** @param {string} message */
const say = (message) => process.stderr.write(`sdk: ${message}\n`);

/**
 * What the conformance lines say: all cases passed, and each language has the same.
 * @param {string} report
 * @param {readonly string[]} ran names
 * @returns {string[]} what is wrong
 */
export function conformanceProblems(report, ran) {
  const counts = new Map(
    [...report.matchAll(/^gpd-conformance (\w+) (\d+)\/(\d+)$/gm)].map(([, name, passed, total]) => [
      `${name}`,
      { passed: Number(passed), total: Number(total) },
    ]),
  );
  const totals = new Set([...counts.values()].map(({ total }) => total));
  const problems = totals.size > 1 ? [`the totals differ: ${[...totals].join(', ')}`] : [];
  for (const name of ran) {
    const count = counts.get(name);
    if (!count) problems.push(`${name} told no count`);
    else if (count.passed !== count.total || count.total === 0) {
      problems.push(`${name} passed ${count.passed} of ${count.total}`);
    }
  }
  return problems;
}

/**
 * What it says goes to `words`.
 * @param {readonly string[]} command @param {string} cwd @param {NodeJS.ProcessEnv} env @param {Buffer[]} words
 * @returns {Promise<boolean>}
 */
async function run([file = '', ...args], cwd, env, words) {
  const child = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => words.push(chunk));
  try {
    const [code] = await once(child, 'close');
    return code === 0;
  } catch {
    return false;
  }
}

/** A gpd and a stub for one language: the READMEs of all of them speak of one and the same person. */
async function startServers() {
  const serve = join(ROOT, 'sdk', 'conformance', 'serve.mjs');
  const child = spawn(process.execPath, [serve], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const first = await Promise.race([
    once(createInterface({ input: child.stdout }), 'line'),
    exited.then(() => null),
  ]);
  if (!first) throw new Error('sdk/conformance/serve.mjs did not start');
  return {
    told: String(first[0]),
    async stop() {
      child.stdin.end();
      await exited;
    },
  };
}

/** @param {Sdk} sdk @param {string} report @returns {Promise<boolean>} */
async function runOne({ name, commands }, report) {
  const begun = performance.now();
  const servers = await startServers();
  const env = { ...process.env, GPD_CONFORMANCE: servers.told, GPD_CONFORMANCE_REPORT: report };
  /** @type {Buffer[]} */
  const words = [];
  let failed = null;
  for (const command of commands) {
    if (await run(command, join(ROOT, 'sdk', name), env, words)) continue;
    failed = command;
    break;
  }
  await servers.stop();
  // In one piece: another language may be speaking at the same time.
  process.stderr.write(Buffer.concat(words));
  say(
    failed
      ? `${name}: FAILED at ${failed.join(' ')}`
      : `${name}: ok, ${Math.round((performance.now() - begun) / 1000)} s`,
  );
  return failed === null;
}

/**
 * Two side by side: half of the time goes into waiting.
 * @param {readonly Sdk[]} sdks @param {string} report @returns {Promise<boolean>}
 */
async function runAll(sdks, report) {
  const waiting = [...sdks];
  let good = true;
  const lane = async () => {
    for (let sdk = waiting.shift(); sdk; sdk = waiting.shift()) good = (await runOne(sdk, report)) && good;
  };
  await Promise.all([lane(), lane()]);
  return good;
}

/** @param {Sdk} sdk */
const isHere = ({ probe: [file = '', ...args] }) => spawnSync(file, args, { stdio: 'ignore' }).status === 0;

/**
 * @param {readonly string[]} [names] of the SDKs to test; all of them where none is named
 * @returns {Promise<boolean>} true when nothing failed
 */
export async function testSdks(names = []) {
  const unknown = names.filter((name) => !SDKS.some((sdk) => sdk.name === name));
  if (unknown.length > 0) {
    say(`no SDK named ${unknown.join(', ')}: there are ${SDKS.map(({ name }) => name).join(', ')}`);
    return false;
  }
  const wanted = SDKS.filter(({ name }) => names.length === 0 || names.includes(name));
  const present = wanted.filter(({ name }) => existsSync(join(ROOT, 'sdk', name)));
  const runnable = present.filter(isHere);
  const missing = present.filter((sdk) => !runnable.includes(sdk));
  const scratch = mkdtempSync(join(tmpdir(), 'gpd-sdks-'));
  const report = join(scratch, 'report');
  const good = await runAll(runnable, report);
  const told = existsSync(report) ? readFileSync(report, 'utf8') : '';
  rmSync(scratch, { recursive: true });
  process.stderr.write(told);
  const problems = conformanceProblems(
    told,
    runnable.map(({ name }) => name),
  );
  for (const problem of problems) say(`conformance: ${problem}`);
  for (const { name, needs } of missing) say(`NOT RUN: ${name}: this machine lacks ${needs}`);
  const isComplete = missing.length === 0 || !process.env['REQUIRE_TOOLS'];
  return good && problems.length === 0 && isComplete;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.exitCode = (await testSdks(process.argv.slice(2))) ? 0 : 1;
}
