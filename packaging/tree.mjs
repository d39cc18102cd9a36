// Copies everything that a running gpd needs into one folder: the program, its pages, its migrations, and the loaded parts of
// node_modules. The portable archive, the Debian package and the container image contain the same tree.
// usage: node packaging/tree.mjs FOLDER
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

/** Dependencies that sqlite3 needs only for its compilation. node-gyp is optional, so it is left out anyway. */
const FOR_THE_BUILD = new Map([['sqlite3', new Set(['node-addon-api', 'prebuild-install', 'tar'])]]);

/**
 * Finds a package as Node does from the folder of another one.
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
 * Lists the packages that a running gpd loads, including the project's one optional package, which `gpd demo` needs. Optional
 * packages of others are build tools.
 * @param {Packages} packages
 * @returns {string[]} sorted paths
 */
export function runtimePackages(packages) {
  /** @type {Set<string>} */
  const found = new Set();
  /** @param {string} path */
  const visit = (path) => {
    const packageName = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    const { dependencies, optionalDependencies } = packages[path] ?? {};
    for (const name of Object.keys({ ...dependencies, ...(path === '' && optionalDependencies) })) {
      if (FOR_THE_BUILD.get(packageName)?.has(name)) continue;
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
 * True for files of a package that are loaded, and for its licence; false for types, source maps and documentation.
 * @param {string} path from the project's root
 * @returns {boolean}
 */
export function isLoaded(path) {
  if (path.startsWith('node_modules/sqlite3/')) {
    return path === NATIVE || /^node_modules\/sqlite3\/(?:lib\/.*\.js|package\.json|LICENSE)$/.test(path);
  }
  // A third of all files: ink imports one function of it, and the package has each module three times.
  if (path.startsWith('node_modules/es-toolkit/'))
    return /^node_modules\/es-toolkit\/(?:dist\/.*\.mjs|package\.json|LICENSE)$/.test(path);
  const name = path.slice(path.lastIndexOf('/') + 1);
  if (/^(?:licen[cs]e|notice|copying)/i.test(name)) return true;
  if (/\/(?:\.[^/]+|test|tests|__tests__|example|examples|benchmark|benchmarks|bench|doc|docs)\//.test(path))
    return false;
  return !name.startsWith('.') && /\.(?:c?js|mjs|json|node|wasm|ejs)$/.test(name);
}

/**
 * @param {string} folder from the project's root, '' for the root itself
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
 * True for files that the build made for the program. `dist` also has packages and releases that were made before, of whatever type.
 * @param {string} path from the project's root, below `dist`
 * @returns {boolean}
 */
export function isBuilt(path) {
  return !path.startsWith('dist/release/') && /\.(?:js|json|d\.ts)$/.test(path);
}

/**
 * True for command-line programs of packages, which gpd does not run.
 * @param {string} path
 */
function isProgram(path) {
  return path.endsWith('js') && readFileSync(join(root, path)).subarray(0, 2).toString() === '#!';
}

/** Keeps only the fields of package.json that a running gpd reads: the tree has no scripts and tools. */
function createManifest() {
  const { name, version, description, license, type, engines, bin } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  );
  return `${JSON.stringify({ name, version, description, license, private: true, type, engines, bin }, null, 2)}\n`;
}

/**
 * @param {string} project
 * @returns {string | null} the missing step before a tree can be created
 */
export function missingBuild(project) {
  const missing = ['dist/cli/main.js', NATIVE].find((path) => !existsSync(join(project, path)));
  return missing === undefined ? null : `${missing} is missing: \`npm run build\` first`;
}

/**
 * @param {string} to a folder, created if it is missing
 * @returns {number} the number of files
 */
export function createTree(to) {
  const missing = missingBuild(root);
  if (missing !== null) throw new Error(missing);
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const packages = runtimePackages(lock.packages).flatMap((folder) =>
    [...filesIn(folder)].filter((path) => isLoaded(path) && !isProgram(path)),
  );
  const files = [
    'bin/gpd',
    'bin/environment.mjs',
    'bin/health.mjs',
    'LICENSE',
    ...[...filesIn('dist')].filter(isBuilt),
    ...filesIn('migrations'),
    ...filesIn('views'),
    ...packages,
  ];
  for (const path of files) {
    const target = join(to, path);
    // Explicit modes, so that the tree does not depend on the umask.
    mkdirSync(dirname(target), { recursive: true, mode: 0o755 });
    copyFileSync(join(root, path), target);
    chmodSync(target, path === 'bin/gpd' ? 0o755 : 0o644);
  }
  writeFileSync(join(to, 'package.json'), createManifest(), { mode: 0o644 });
  return files.length + 1;
}

if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  const [to] = process.argv.slice(2);
  if (to === undefined) throw new Error('usage: node packaging/tree.mjs FOLDER');
  process.umask(0o022);
  process.stderr.write(`gpd: ${createTree(to)} files in ${to}\n`);
}
