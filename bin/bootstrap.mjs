#!/usr/bin/env node
// `npm run demo`, `npm run build`, `npm test` and `npm run test:sdk` on a fresh clone: checks the machine, installs, builds, then runs.
// Its syntax is what Node 12 reads, so that an old Node gets a sentence and no syntax error.
import { spawn } from 'child_process';
import { existsSync, readFileSync, realpathSync } from 'fs';
import { basename, join } from 'path';
import { fileURLToPath, pathToFileURL } from 'url';

const OLDEST = { major: 20, minor: 19 };
const root = fileURLToPath(new URL('..', import.meta.url));
const NATIVE = 'node_modules/sqlite3/build/Release/node_sqlite3.node';

/** @typedef {{ version?: string, integrity?: string, optional?: boolean, devOptional?: boolean, peer?: boolean }} Locked */
/** @typedef {{ packages?: Record<string, Locked> }} Lockfile */

/**
 * @param {string} version as process.versions.node gives it
 * @returns {string | null} what to do about it, or null when it is new enough
 */
export function nodeProblem(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > OLDEST.major || (major === OLDEST.major && minor >= OLDEST.minor)) return null;
  return `gpd needs Node ${OLDEST.major}.${OLDEST.minor} or newer, and this is ${version}: install a current one from https://nodejs.org, or with \`nvm install 24\`.`;
}

/**
 * Whether node_modules holds what package-lock.json names. By content: times change with every checkout.
 * @param {Lockfile} lock package-lock.json
 * @param {Lockfile | null} installed npm's own record, node_modules/.package-lock.json
 * @returns {boolean}
 */
export function isInstalled(lock, installed) {
  const wanted = lock.packages || {};
  const present = (installed && installed.packages) || {};
  return Object.keys(wanted).every((path) => {
    const want = wanted[path] || {};
    const have = present[path];
    // Another platform's binaries are named in the lock and rightly absent.
    if (path === '' || (!have && (want.optional || want.devOptional || want.peer))) return true;
    return have !== undefined && have.version === want.version && have.integrity === want.integrity;
  });
}

/**
 * The same for every npm: only a new one knows `allowScripts` of package.json, so no script of a package runs by itself.
 * @param {string[]} scripts packages whose install scripts run
 * @returns {string[][]} arguments of npm, call by call
 */
export function installSteps(scripts) {
  return [
    ['ci', '--include=dev', '--no-audit', '--no-fund', '--ignore-scripts'],
    ['run', '--silent', 'preinstall'],
    ['rebuild', '--ignore-scripts=false'].concat(scripts),
  ];
}

/**
 * @param {string | undefined} execpath what npm says of itself in npm_execpath
 * @param {string} platform
 * @param {string[]} args
 * @returns {{ file: string, args: string[], shell: boolean }}
 */
export function npmCommand(execpath, platform, args) {
  if (execpath && basename(execpath) === 'npm-cli.js') {
    return { file: process.execPath, args: [execpath].concat(args), shell: false };
  }
  // npm is a script there, which only a shell starts.
  return { file: 'npm', args, shell: platform === 'win32' };
}

/** Ends the process with one sentence. */
class Stop extends Error {}

/** @param {string} message */
function say(message) {
  process.stderr.write(`gpd: ${message}\n`);
}

/**
 * Runs a program to its end; its output goes to stderr, because stdout is the data of the task.
 * A signal that comes in the meantime is handed on, and ends this process too.
 * @param {string} file
 * @param {string[]} args
 * @param {boolean} [shell]
 * @returns {Promise<number>} its exit code
 */
function run(file, args, shell) {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { cwd: root, stdio: ['ignore', 2, 2], shell: shell === true });
    /** @type {NodeJS.Signals | null} */
    let caught = null;
    /** @param {NodeJS.Signals} signal */
    const handOn = (signal) => {
      caught = signal;
      child.kill(signal);
    };
    process.on('SIGINT', handOn).on('SIGTERM', handOn);
    child.on('error', (error) => reject(new Stop(`${file} cannot be run: ${error.message}`)));
    child.on('exit', (code, signal) => {
      process.off('SIGINT', handOn).off('SIGTERM', handOn);
      const fatal = caught || signal;
      if (fatal) process.kill(process.pid, fatal);
      else resolve(code === null ? 1 : code);
    });
  });
}

/**
 * @param {string} path
 * @returns {any} null when it cannot be read
 */
function readJson(path) {
  try {
    return JSON.parse(readFileSync(join(root, path), 'utf8'));
  } catch {
    return null;
  }
}

async function install() {
  const lock = readJson('package-lock.json');
  if (!lock) throw new Stop('package-lock.json is missing or broken: take it from the repository again.');
  if (existsSync(join(root, NATIVE)) && isInstalled(lock, readJson('node_modules/.package-lock.json')))
    return;
  say('installing the packages of package-lock.json');
  const { allowScripts } = readJson('package.json');
  for (const step of installSteps(Object.keys(allowScripts).filter((name) => allowScripts[name]))) {
    const npm = npmCommand(process.env['npm_execpath'], process.platform, step);
    const code = await run(npm.file, npm.args, npm.shell);
    if (code !== 0) throw new Stop(`npm ${step[0]} failed with exit code ${code}; what it said is above.`);
  }
}

async function build() {
  const steps = [
    [join('node_modules', 'typescript', 'bin', 'tsc'), '-p', '.'],
    [join('bin', 'build-agent.mjs')],
    [join('bin', 'build-banner.mjs')],
  ];
  for (const step of steps) {
    const code = await run(process.execPath, step);
    if (code !== 0) throw new Stop('the build failed; what it said is above.');
  }
}

/**
 * Becomes another program of this project: in this very process, so that signals and exit codes are its own.
 * @param {string} path
 * @param {string[]} args
 */
async function become(path, args) {
  const file = join(root, path);
  process.argv = [process.execPath, file].concat(args);
  await import(pathToFileURL(file).href);
}

/** What `npm test` runs (vitest.config.ts); `npm run test:all` runs the others too. */
const TIERS = ['app', 'system', 'journeys'];

/** @param {string[]} args those of vitest: a path or a project that is named is run, whatever its tier */
export function tiersFor(args) {
  const named = args.some((arg) => !arg.startsWith('-') || arg.startsWith('--project'));
  return named ? [] : TIERS.map((tier) => `--project=${tier}`);
}

/**
 * @param {string | undefined} task
 * @param {string[]} args
 */
async function main(task, args) {
  if (!['demo', 'build', 'test', 'sdk'].includes(task || '')) {
    say('usage: node bin/bootstrap.mjs demo|build|test|sdk [arguments]');
    process.exitCode = 2;
    return;
  }
  const problem = nodeProblem(process.versions.node);
  if (problem) throw new Stop(problem);
  process.chdir(root);
  await install();
  await build();
  if (task === 'demo') await become('dist/cli/main.js', ['demo'].concat(args));
  if (task === 'sdk') {
    const sdks = await import(pathToFileURL(join(root, 'bin', 'sdks.mjs')).href);
    if (!(await sdks.testSdks(args)))
      throw new Stop('the tests of the SDKs failed or could not run; what they said is above.');
  }
  if (task === 'test') {
    // test/support/global-setup.ts would build once more.
    process.env['SKIP_BUILD'] = '1';
    await become('node_modules/vitest/vitest.mjs', ['run'].concat(tiersFor(args), args));
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  main(process.argv[2], process.argv.slice(3)).catch((error) => {
    say(error instanceof Stop ? error.message : String(error.stack));
    process.exitCode = 1;
  });
}
