// What runs, and nothing else, in one folder: the program, its pages, its migrations, and of node_modules what production
// needs. The portable archive, the Debian package and the container image contain the same tree. usage: node packaging/tree.mjs FOLDER
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** @typedef {{ dependencies?: Record<string, string>, optionalDependencies?: Record<string, string> }} Locked */
/** @typedef {Readonly<Record<string, Locked>>} Packages the `packages` of package-lock.json */

const root = fileURLToPath(new URL('..', import.meta.url));
const NATIVE = 'node_modules/sqlite3/build/Release/node_sqlite3.node';

/** What sqlite3 needs to be compiled, and not to run; node-gyp is optional and so never looked at. */
const FOR_THE_BUILD = new Map([['sqlite3', new Set(['node-addon-api', 'prebuild-install', 'tar'])]]);

/**
 * Where Node finds a package from another one's folder.
 * @param {Packages} packages
 * @param {string} name
 * @param {string} from '' for the project itself
 * @returns {string | null}
 */
function resolve(packages, name, from) {
  let folder = from;
  for (;;) {
    const path = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`;
    if (packages[path]) return path;
    if (folder === '') return null;
    folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')));
  }
}

/**
 * The packages that a running gpd loads: their paths, sorted. The one optional package of the project itself belongs to them,
 * because `gpd demo` needs it; those of other packages are build tools.
 * @param {Packages} packages
 * @returns {string[]}
 */
export function runtimePackages(packages) {
  /** @type {Set<string>} */
  const found = new Set();
  /** @param {string} path */
  const visit = (path) => {
    const own = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    const { dependencies, optionalDependencies } = packages[path] ?? {};
    for (const name of Object.keys({ ...dependencies, ...(path === '' && optionalDependencies) })) {
      if (FOR_THE_BUILD.get(own)?.has(name)) continue;
      const to = resolve(packages, name, path);
      if (to === null) throw new Error(`package-lock.json names no ${name} for ${path || 'the project'}`);
      if (found.has(to)) continue;
      found.add(to);
      visit(to);
    }
  };
  visit('');
  return [...found].sort();
}

/**
 * Of a package: what is loaded, and its licence. Types, source maps and prose stay away.
 * @param {string} path from the project's root
 * @returns {boolean}
 */
export function isLoaded(path) {
  if (path.startsWith('node_modules/sqlite3/')) {
    return path === NATIVE || /^node_modules\/sqlite3\/(?:lib\/.*\.js|package\.json|LICENSE)$/.test(path);
  }
  const name = path.slice(path.lastIndexOf('/') + 1);
  if (/^(?:licen[cs]e|notice|copying)/i.test(name)) return true;
  if (/\/(?:\.[^/]+|test|tests|__tests__|example|examples|benchmark|benchmarks|bench|doc|docs)\//.test(path))
    return false;
  return !name.startsWith('.') && /\.(?:c?js|mjs|json|node|wasm|ejs)$/.test(name);
}

/**
 * @param {string} folder from the project's root, '' for itself
 * @returns {Generator<string>} files, sorted, without the folders named node_modules below it
 */
function* filesIn(folder) {
  const entries = readdirSync(join(root, folder), { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory() && entry.name !== 'node_modules') yield* filesIn(path);
    else if (entry.isFile()) yield path;
  }
}

/**
 * Of dist, migrations and views: what the build made for the program, and no package that was made before.
 * @param {string} path from the project's root
 * @returns {boolean}
 */
export function isBuilt(path) {
  return !/\.(?:tsbuildinfo|d\.ts|deb)$/.test(path);
}

/**
 * Command lines that packages bring along: nobody runs them here.
 * @param {string} path
 */
function isProgram(path) {
  return path.endsWith('js') && readFileSync(join(root, path)).subarray(0, 2).toString() === '#!';
}

/** Only what a running gpd reads of package.json: scripts and tools are not there. */
function manifest() {
  const { name, version, description, license, type, engines, bin } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  );
  return `${JSON.stringify({ name, version, description, license, private: true, type, engines, bin }, null, 2)}\n`;
}

/**
 * @param {string} project
 * @returns {string | null} what to do before a tree can be made of it
 */
export function missingBuild(project) {
  const missing = ['dist/cli/main.js', NATIVE].find((path) => !existsSync(join(project, path)));
  return missing === undefined ? null : `${missing} is missing: \`npm run build\` first`;
}

/**
 * @param {string} to made when it is not there
 * @returns {number} how many files
 */
export function createTree(to) {
  const missing = missingBuild(root);
  if (missing !== null) throw new Error(missing);
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const own = ['dist', 'migrations', 'views'].flatMap((folder) => [...filesIn(folder)]);
  const packages = runtimePackages(lock.packages).flatMap((folder) =>
    [...filesIn(folder)].filter((path) => isLoaded(path) && !isProgram(path)),
  );
  const files = [
    'bin/gpd',
    'bin/environment.mjs',
    'bin/health.mjs',
    'LICENSE',
    ...own.filter(isBuilt),
    ...packages,
  ];
  for (const path of files) {
    const target = join(to, path);
    // The umask of whoever builds shall not be seen in it.
    mkdirSync(dirname(target), { recursive: true, mode: 0o755 });
    copyFileSync(join(root, path), target);
    chmodSync(target, path === 'bin/gpd' ? 0o755 : 0o644);
  }
  writeFileSync(join(to, 'package.json'), manifest(), { mode: 0o644 });
  return files.length + 1;
}

if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  const [to] = process.argv.slice(2);
  if (to === undefined) throw new Error('usage: node packaging/tree.mjs FOLDER');
  process.umask(0o022);
  process.stderr.write(`gpd: ${createTree(to)} files in ${to}\n`);
}
