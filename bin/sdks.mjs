#!/usr/bin/env node
// Runs the tests of every SDK whose tools are installed, and names those that it could not run. gpd has to be built.
// With REQUIRE_TOOLS=1 a missing tool is a failure.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/**
 * @typedef {object} Sdk
 * @property {string} name its folder below sdk/, and its name in the conformance report
 * @property {readonly string[]} probe a command that exits with 0 if the tools are installed
 * @property {string} needs the tools, in words
 * @property {readonly (readonly string[])[]} commands run one after the other in the folder
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
      // All versions are pinned; repeated, this is quick.
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
      // Without Go's cache of results: a cached run would not write its line to the report.
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
 * Checks that all conformance cases passed, and that each language ran the same number.
 * @param {string} report
 * @param {readonly string[]} ran names
 * @returns {string[]} a sentence for each problem
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
 * The table cases × languages: a mark for each case that failed, and a line for all that passed everywhere.
 * @param {string} report with lines `gpd-case LANG passed|failed NAME`
 * @returns {string}
 */
export function conformanceTable(report) {
  const results = [...report.matchAll(/^gpd-case (\w+) (passed|failed) (\S+)$/gm)];
  const languages = [...new Set(results.map(([, language]) => `${language}`))].sort();
  const names = [...new Set(results.map(([, , , name]) => `${name}`))];
  const passed = new Set(
    results
      .filter(([, , outcome]) => outcome === 'passed')
      .map(([, language, , name]) => `${language} ${name}`),
  );
  const width = Math.max(4, ...names.map((name) => name.length));
  const row = (/** @type {string} */ name, /** @type {readonly string[]} */ cells) =>
    [name.padEnd(width), ...cells.map((cell, i) => cell.padEnd(languages[i]?.length ?? 0))]
      .join('  ')
      .trimEnd();
  return [
    row('case', languages),
    ...names.map((name) =>
      row(
        name,
        languages.map((language) => (passed.has(`${language} ${name}`) ? '✓' : '✗')),
      ),
    ),
    '',
  ].join('\n');
}

/**
 * Runs a command and adds its output to `output`.
 * @param {readonly string[]} command @param {string} cwd @param {NodeJS.ProcessEnv} env @param {Buffer[]} output
 * @returns {Promise<boolean>}
 */
async function run([file = '', ...args], cwd, env, output) {
  const child = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk));
  try {
    const [code] = await once(child, 'close');
    return code === 0;
  } catch {
    return false;
  }
}

/** Starts a gpd and a stub server for one language. They are not shared: the READMEs of all languages use the same person. */
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
    settings: String(first[0]),
    async stop() {
      child.stdin.end();
      await exited;
    },
  };
}

/** @param {Sdk} sdk @param {string} report @returns {Promise<boolean>} */
async function runOne({ name, commands }, report) {
  const startedAt = performance.now();
  const servers = await startServers();
  const env = { ...process.env, GPD_CONFORMANCE: servers.settings, GPD_CONFORMANCE_REPORT: report };
  /** @type {Buffer[]} */
  const output = [];
  let failed = null;
  for (const command of commands) {
    if (await run(command, join(ROOT, 'sdk', name), env, output)) continue;
    failed = command;
    break;
  }
  await servers.stop();
  // Printed at once, because the tests of another language run at the same time.
  process.stderr.write(Buffer.concat(output));
  say(
    failed
      ? `${name}: FAILED at ${failed.join(' ')}`
      : `${name}: ok, ${Math.round((performance.now() - startedAt) / 1000)} s`,
  );
  return failed === null;
}

/**
 * Runs two languages at a time, because half of the time is spent waiting.
 * @param {readonly Sdk[]} sdks @param {string} report @returns {Promise<boolean>}
 */
async function runAll(sdks, report) {
  const waiting = [...sdks];
  let hasPassed = true;
  const lane = async () => {
    for (let sdk = waiting.shift(); sdk; sdk = waiting.shift())
      hasPassed = (await runOne(sdk, report)) && hasPassed;
  };
  await Promise.all([lane(), lane()]);
  return hasPassed;
}

/** @param {Sdk} sdk */
const isHere = ({ probe: [file = '', ...args] }) => spawnSync(file, args, { stdio: 'ignore' }).status === 0;

/**
 * @param {readonly string[]} [names] SDKs to test; by default all
 * @returns {Promise<boolean>} true when nothing failed
 */
export async function testSdks(names = []) {
  const unknown = names.filter((name) => !SDKS.some((sdk) => sdk.name === name));
  if (unknown.length > 0) {
    say(`no SDK named ${unknown.join(', ')}: there are ${SDKS.map(({ name }) => name).join(', ')}`);
    return false;
  }
  const chosen = SDKS.filter(({ name }) => names.length === 0 || names.includes(name));
  const present = chosen.filter(({ name }) => existsSync(join(ROOT, 'sdk', name)));
  const runnable = present.filter(isHere);
  const missing = present.filter((sdk) => !runnable.includes(sdk));
  const scratch = mkdtempSync(join(tmpdir(), 'gpd-sdks-'));
  const report = join(scratch, 'report');
  const hasPassed = await runAll(runnable, report);
  const reportText = existsSync(report) ? readFileSync(report, 'utf8') : '';
  rmSync(scratch, { recursive: true });
  process.stderr.write(reportText.replace(/^gpd-case .*\n/gm, ''));
  if (reportText.includes('gpd-case ')) process.stdout.write(conformanceTable(reportText));
  const problems = conformanceProblems(
    reportText,
    runnable.map(({ name }) => name),
  );
  for (const problem of problems) say(`conformance: ${problem}`);
  for (const { name, needs } of missing) say(`NOT RUN: ${name}: this machine lacks ${needs}`);
  const isComplete = missing.length === 0 || !process.env['REQUIRE_TOOLS'];
  return hasPassed && problems.length === 0 && isComplete;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.exitCode = (await testSdks(process.argv.slice(2))) ? 0 : 1;
}
