#!/usr/bin/env node
// `npm run demo`, `npm run build`, `npm test` and `npm run test:sdk` on a fresh clone: checks the machine, installs, builds, then runs.
// Its syntax is that of Node 12, so that an old Node prints a sentence and not a syntax error.
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
 * Compares node_modules with package-lock.json, by content, because times change with every checkout.
 * @param {Lockfile} lock package-lock.json
 * @param {Lockfile | null} installed npm's own record, node_modules/.package-lock.json
 * @returns {boolean}
 */
export function isInstalled(lock, installed) {
  const expected = lock.packages || {};
  const present = (installed && installed.packages) || {};
  return Object.keys(expected).every((path) => {
    const want = expected[path] || {};
    const have = present[path];
    // The lock file also names binaries of other platforms, which are not installed.
    if (path === '' || (!have && (want.optional || want.devOptional || want.peer))) return true;
    return have !== undefined && have.version === want.version && have.integrity === want.integrity;
  });
}

export const INSTALL = ['ci', '--include=dev', '--no-audit', '--no-fund', '--ignore-scripts'];
/** Runs the install scripts of `allowScripts` in package.json explicitly, because only a new npm knows that field. */
const REBUILD = ['rebuild', '--ignore-scripts=false'];

/**
 * @param {string | undefined} task
 * @returns {string[][]} programs of the build with their arguments, which can run at the same time
 */
export function buildSteps(task) {
  // The check of all types takes six times as long as the rest, and finds nothing in a clone that nobody changed.
  const compile = [join('node_modules', 'typescript', 'bin', 'tsc'), '-p', '.'];
  return [
    compile.concat(task === 'demo' ? '--noCheck' : []),
    [join('bin', 'build-agent.mjs')],
    [join('bin', 'build-banner.mjs')],
  ];
}

/**
 * @param {string | undefined} execpath the variable npm_execpath, which npm sets
 * @param {string} platform
 * @param {string[]} args
 * @returns {{ file: string, args: string[], shell: boolean }}
 */
export function npmCommand(execpath, platform, args) {
  if (execpath && basename(execpath) === 'npm-cli.js') {
    return { file: process.execPath, args: [execpath].concat(args), shell: false };
  }
  // On Windows npm is a script, which only a shell can start.
  return { file: 'npm', args, shell: platform === 'win32' };
}

/** An error whose message is the only output. */
class Stop extends Error {}

/** @param {string} message */
function say(message) {
  process.stderr.write(`gpd: ${message}\n`);
}

/**
 * Runs a program and forwards signals to it, after which this process ends too. Output goes to stderr: stdout is the data of
 * the task.
 * @param {string} file
 * @param {string[]} args
 * @param {boolean} [shell]
 * @returns {Promise<number>} its exit code
 */
function run(file, args, shell) {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { cwd: root, stdio: ['ignore', 2, 2], shell: shell === true });
    /** @type {NodeJS.Signals | null} */
    let caughtSignal = null;
    /** @param {NodeJS.Signals} signal */
    const forwardSignal = (signal) => {
      caughtSignal = signal;
      child.kill(signal);
    };
    process.on('SIGINT', forwardSignal).on('SIGTERM', forwardSignal);
    child.on('error', (error) => reject(new Stop(`${file} cannot be run: ${error.message}`)));
    child.on('exit', (code, signal) => {
      process.off('SIGINT', forwardSignal).off('SIGTERM', forwardSignal);
      const fatal = caughtSignal || signal;
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

/** @param {string[]} args */
async function runNpm(args) {
  const npm = npmCommand(process.env['npm_execpath'], process.platform, args);
  const code = await run(npm.file, npm.args, npm.shell);
  if (code !== 0) throw new Stop(`npm ${args[0]} failed with exit code ${code}; what it said is above.`);
}

/** @param {string[]} program */
async function runNode(program) {
  const code = await run(process.execPath, program);
  if (code !== 0) throw new Stop('the build failed; what it said is above.');
}

/** @param {string | undefined} task */
async function installAndBuild(task) {
  const lock = readJson('package-lock.json');
  if (!lock) throw new Stop('package-lock.json is missing or broken: take it from the repository again.');
  const wasInstalled =
    existsSync(join(root, NATIVE)) && isInstalled(lock, readJson('node_modules/.package-lock.json'));
  /** @type {Promise<void>[]} */
  const steps = [];
  if (!wasInstalled) {
    say('installing the packages of package-lock.json');
    await runNpm(INSTALL);
    const { allowScripts } = readJson('package.json');
    steps.push(runNode([join('bin', 'native.mjs'), '--quick']));
    steps.push(runNpm(REBUILD.concat(Object.keys(allowScripts).filter((name) => allowScripts[name]))));
  }
  await Promise.all(steps.concat(buildSteps(task).map(runNode)));
}

/**
 * Runs another program of this project in this process, so that it gets the signals and sets the exit code.
 * @param {string} path
 * @param {string[]} args
 */
async function runInProcess(path, args) {
  const file = join(root, path);
  process.argv = [process.execPath, file].concat(args);
  await import(pathToFileURL(file).href);
}

/** Projects of vitest.config.ts that `npm test` runs; `npm run test:all` runs the others too. */
const TIERS = ['app', 'system', 'journeys'];

/** @param {string[]} args arguments of vitest: a path or a project named there runs, whatever its tier */
export function tiersFor(args) {
  const isNamed = args.some((arg) => !arg.startsWith('-') || arg.startsWith('--project'));
  return isNamed ? [] : TIERS.map((tier) => `--project=${tier}`);
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
  await installAndBuild(task);
  if (task === 'demo') await runInProcess('dist/cli/main.js', ['demo'].concat(args));
  if (task === 'sdk') {
    const sdks = await import(pathToFileURL(join(root, 'bin', 'sdks.mjs')).href);
    if (!(await sdks.testSdks(args)))
      throw new Stop('the tests of the SDKs failed or could not run; what they said is above.');
  }
  if (task === 'test') {
    // Otherwise test/support/global-setup.ts would build again.
    process.env['SKIP_BUILD'] = '1';
    await runInProcess('node_modules/vitest/vitest.mjs', ['run'].concat(tiersFor(args), args));
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  main(process.argv[2], process.argv.slice(3)).catch((error) => {
    say(error instanceof Stop ? error.message : String(error.stack));
    process.exitCode = 1;
  });
}
