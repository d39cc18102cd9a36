#!/usr/bin/env node
// Compiles SQLite's native module once per machine and keeps it in the user's cache; no binary is downloaded. npm runs this file as
// gpd's `preinstall`. In `npm install --global` that is before sqlite3's own install script, which first looks into `prebuilds`.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

const NATIVE = join('build', 'Release', 'node_sqlite3.node');
/** With one of these variables the module is compiled for this call alone, without the cache. */
const FLAGS =
  /^(?:CC|CXX|CFLAGS|CXXFLAGS|CPPFLAGS|LDFLAGS|npm_config_build_from_source|npm_config_sqlite.*)$/;
const TICK_MS = 15_000;

/** @param {string} message */
const say = (message) => process.stderr.write(`gpd: ${message}\n`);
const digest = (/** @type {Buffer} */ bytes) => createHash('sha256').update(bytes).digest('hex');

/** @param {NodeJS.ProcessEnv} env */
export function cacheFolder(env) {
  return join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'gpd');
}

/** @returns {string | undefined} the version of glibc; undefined with another C library */
function readLibcVersion() {
  const report = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
  return report.header.glibcVersionRuntime;
}

/**
 * The module depends on its sources and the machine's C library, but not on the version of Node, because Node-API is stable.
 * @param {string} folder of the package sqlite3
 */
export function cacheKey(folder) {
  const sources = ['src', 'deps'].flatMap((part) =>
    readdirSync(join(folder, part), { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => join(part, name))
      .sort(),
  );
  const hash = createHash('sha256');
  for (const path of ['package.json', 'binding.gyp', ...sources])
    hash.update(`${path}\0${digest(readFileSync(join(folder, path)))}\n`);
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const sum = hash.digest('hex').slice(0, 16);
  return `sqlite3-${version}-${process.platform}-${process.arch}-${readLibcVersion() ?? 'musl'}-${sum}`;
}

/** @param {string} path */
function isOursAlone(path) {
  const { uid, mode } = lstatSync(path);
  return process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0);
}

/**
 * The name of a cached file contains its SHA-256. It is native code, so it is refused if another user could have written it.
 * @param {string} cache @param {string} key
 * @returns {Buffer | null}
 */
export function readCache(cache, key) {
  try {
    const name = readdirSync(cache).find((one) => one.startsWith(`${key}.`));
    if (name === undefined) return null;
    const path = join(cache, name);
    if (!lstatSync(path).isFile() || !isOursAlone(cache) || !isOursAlone(path)) {
      say(`${path} is passed over: another user can write it, or it is a link`);
      return null;
    }
    const bytes = readFileSync(path);
    if (name === `${key}.${digest(bytes)}.tar.gz`) return bytes;
    say(`${path} is passed over: it is damaged`);
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ENOENT')
      say(`the cache cannot be read: ${String(error)}`);
  }
  return null;
}

/** @param {string} cache @param {string} key @param {Buffer} bytes */
export function writeCache(cache, key, bytes) {
  try {
    mkdirSync(cache, { recursive: true, mode: 0o700 });
    const partial = join(cache, `.${process.pid}.partial`);
    writeFileSync(partial, bytes, { mode: 0o600, flag: 'wx' });
    renameSync(partial, join(cache, `${key}.${digest(bytes)}.tar.gz`));
  } catch (error) {
    say(`the module is not kept for the next time: ${String(error)}`);
  }
}

/** @param {string} folder of the package sqlite3 */
function canLoad(folder) {
  return spawnSync(process.execPath, ['-e', `require(${JSON.stringify(join(folder, NATIVE))})`]).status === 0;
}

/**
 * @returns the file name that sqlite3's own install script looks for
 * @param {{ version: string, binary: { napi_versions: number[] } }} manifest of sqlite3
 */
function prebuildName({ version, binary }) {
  const napi = Math.max(...binary.napi_versions.filter((one) => one <= Number(process.versions['napi'])));
  const system =
    process.platform === 'linux' && readLibcVersion() === undefined ? 'linuxmusl' : process.platform;
  return `sqlite3-v${version}-napi-v${napi}-${system}-${process.arch}.tar.gz`;
}

/**
 * @param {(name: string) => boolean} has true if a program with this name can be run
 * @returns {string[]} tools that are missing to compile sqlite3's native module
 */
export function missingTools(has) {
  const needed = [
    { title: 'a C++ compiler', names: ['c++', 'g++', 'clang++'] },
    { title: 'make', names: ['make', 'gmake'] },
    { title: 'Python 3', names: ['python3', 'python'] },
  ];
  return needed.filter((tool) => !tool.names.some(has)).map((tool) => tool.title);
}

/**
 * @param {string[]} missing
 * @param {string} platform as process.platform gives it
 * @returns {string | null}
 */
export function toolProblem(missing, platform) {
  if (missing.length === 0) return null;
  const remedy =
    platform === 'darwin'
      ? '`xcode-select --install`'
      : '`apt-get install build-essential python3` on Debian and Ubuntu, `dnf install gcc-c++ make python3` on Fedora';
  return `gpd compiles SQLite's native module, and this machine lacks ${missing.join(', ')}: ${remedy}, then try again.`;
}

/** @param {string} name */
function canRun(name) {
  const folders = (process.env['PATH'] || '').split(delimiter);
  return folders.some((folder) => folder !== '' && existsSync(join(folder, name)));
}

/**
 * Finds the headers that were installed with this Node, as its archives and images have them, so that none are fetched.
 * @param {string} execPath
 * @returns {string | null} the folder for node-gyp's option `nodedir`
 */
export function findHeaders(execPath) {
  try {
    const prefix = dirname(dirname(realpathSync(execPath)));
    const header = readFileSync(join(prefix, 'include', 'node', 'node_version.h'), 'utf8');
    const parts = ['MAJOR', 'MINOR', 'PATCH'].map(
      (part) => new RegExp(`#define NODE_${part}_VERSION (\\d+)`).exec(header)?.[1],
    );
    return parts.join('.') === process.versions.node ? prefix : null;
  } catch {
    return null;
  }
}

/**
 * @param {string} output of node-gyp
 * @returns {string | null} what to do if node-gyp could not fetch Node's headers
 */
export function headersProblem(output) {
  if (!/network connectivity|node-gyp[/\\]lib[/\\](?:download|install)\.js/.test(output)) return null;
  const { version } = process;
  return `gpd compiles SQLite's native module, and the headers of Node ${version} could not be fetched from https://nodejs.org: allow that, or unpack node-${version}-headers.tar.gz and name its folder, npm_config_nodedir=FOLDER, then try again.`;
}

/** In a module for the demo and the tests, which packaging compiles again. */
const QUICK_MARK = join('build', 'Release', 'quick');

/**
 * Prints the elapsed time now and then, because the compiler is silent for a minute.
 * @param {string} folder @param {boolean} isQuick with a third of the compiler's work, for a module that is a tenth slower
 */
async function compile(folder, isQuick) {
  // On Windows node-gyp finds the compiler without PATH, and says itself if it is missing.
  const problem = process.platform === 'win32' ? null : toolProblem(missingTools(canRun), process.platform);
  if (problem !== null) throw new Error(problem);
  const gyp = createRequire(join(folder, 'package.json')).resolve('node-gyp/bin/node-gyp.js');
  const startedAt = performance.now();
  const elapsed = () => `${Math.round((performance.now() - startedAt) / 1000)} s`;
  say("compiling SQLite's native module, once on this machine: about a minute");
  const ticker = setInterval(() => say(`still compiling: ${elapsed()}`), TICK_MS);
  const nodedir = process.env['npm_config_nodedir'] ?? findHeaders(process.execPath) ?? '';
  say(
    nodedir === ''
      ? "Node's headers come from https://nodejs.org, unless npm_config_nodedir names a folder with them"
      : `Node's headers come from ${nodedir}`,
  );
  // Under `npm run --silent`, node-gyp would fail without a reason.
  const env = {
    ...process.env,
    npm_config_loglevel: 'error',
    npm_config_nodedir: nodedir,
    // They stand behind the -O3 of Node's headers, and the last one counts.
    ...(isQuick && { CFLAGS: '-O1', CXXFLAGS: '-O1' }),
  };
  const child = spawn(process.execPath, [gyp, 'rebuild', '--jobs=max'], { cwd: folder, env });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  const code = await new Promise((resolve) => child.once('close', resolve));
  clearInterval(ticker);
  if (code !== 0)
    throw new Error(headersProblem(output) ?? `SQLite's native module was not compiled:\n${output}`);
  say(`compiled in ${elapsed()}`);
}

/**
 * @param {string} folder of the package sqlite3
 * @param {NodeJS.ProcessEnv} env
 * @param {boolean} mayBeQuick
 */
async function provideModule(folder, env, mayBeQuick) {
  const mark = join(folder, QUICK_MARK);
  if (canLoad(folder) && (mayBeQuick || !existsSync(mark))) return;
  const load = createRequire(join(folder, 'package.json'));
  const prebuild = join(folder, 'prebuilds', prebuildName(load('./package.json')));
  const isOrdinary = !Object.keys(env).some((name) => FLAGS.test(name));
  const isQuick = mayBeQuick && isOrdinary;
  const key = cacheKey(folder);
  const keys = isOrdinary ? [key].concat(isQuick ? `${key}-quick` : []) : [];
  mkdirSync(dirname(prebuild), { recursive: true });
  for (const name of keys) {
    const cached = readCache(cacheFolder(env), name);
    if (cached === null) continue;
    rmSync(mark, { force: true });
    writeFileSync(prebuild, cached);
    load('tar').extract({ cwd: folder, file: prebuild, sync: true });
    const isGood = canLoad(folder);
    say(isGood ? "SQLite's native module is taken from the cache" : 'the cached module does not load here');
    if (isGood) return;
  }
  await compile(folder, isQuick);
  if (isQuick) writeFileSync(mark, '');
  load('tar').create(
    { cwd: folder, file: prebuild, gzip: true, sync: true },
    isQuick ? [NATIVE, QUICK_MARK] : [NATIVE],
  );
  const name = keys.at(-1);
  if (name !== undefined) writeCache(cacheFolder(env), name, readFileSync(prebuild));
}

/** @returns null if sqlite3 is not unpacked yet: other package managers run `preinstall` first */
function findSqlite() {
  try {
    return dirname(createRequire(import.meta.url).resolve('sqlite3/package.json'));
  } catch {
    return null;
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  try {
    const folder = findSqlite();
    if (folder !== null) await provideModule(folder, process.env, process.argv.includes('--quick'));
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
    // In a global installation sqlite3's own script runs afterwards and may still succeed.
    if (process.env['npm_config_global'] !== 'true') process.exitCode = 1;
  }
}
