// Builds the Debian package from what `npm run build` made, with dpkg-deb alone. One commit gives one file, byte for byte:
// times are SOURCE_DATE_EPOCH's (else the commit's), names are sorted, everything belongs to root.
// usage: npm run package:deb -- [--out FOLDER] [--version VERSION]
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { makeTree } from './tree.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const HOME = '/usr/lib/gpd';
const NATIVE = `${HOME}/node_modules/sqlite3/build/Release/node_sqlite3.node`;
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/**
 * @param {string} file
 * @param {string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv }} [options]
 */
function read(file, args, options = {}) {
  return execFileSync(file, args, {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    ...options,
  });
}

/** @returns {number} seconds */
function epoch() {
  const given = process.env['SOURCE_DATE_EPOCH'];
  if (given !== undefined && /^\d+$/.test(given)) return Number(given);
  return Number(read('git', ['log', '-1', '--format=%ct']).trim());
}

/** @param {string} name below packaging/debian */
function template(name) {
  const text = readFileSync(join(root, 'packaging', 'debian', name), 'utf8');
  return text.replaceAll('@NODE@', String(manifest.engines.node).replace(/^>=|\.0$/g, ''));
}

/**
 * @param {string} stage
 * @param {string} path in the package
 * @param {string | Uint8Array} content
 * @param {number} [mode]
 */
function put(stage, path, content, mode = 0o644) {
  const file = join(stage, path);
  mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
  writeFileSync(file, content);
  chmodSync(file, mode);
}

/** @param {string | Uint8Array} content as policy wants it: best compression, no name and no time */
function compressed(content) {
  return gzipSync(content, { level: 9 });
}

/**
 * The units as they are, for the place of the package.
 * @param {string} stage
 */
function putUnits(stage) {
  for (const name of readdirSync(join(root, 'systemd')).sort()) {
    const text = readFileSync(join(root, 'systemd', name), 'utf8')
      .replaceAll('file:///opt/gpd/docs/', 'file:///usr/share/doc/gpd/')
      .replaceAll('/opt/gpd/', `${HOME}/`);
    put(stage, `/usr/lib/systemd/system/${name}`, text);
  }
}

/**
 * @param {string} stage
 * @param {string} version
 * @param {number} seconds
 */
function putDocs(stage, version, seconds) {
  const doc = '/usr/share/doc/gpd';
  for (const name of readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).sort()) {
    if (/^(?:man|images)\//.test(name) || !/\.(?:md|json|conf|py)$|\/Caddyfile$/.test(name)) continue;
    put(stage, `${doc}/${name}`, readFileSync(join(root, 'docs', name)));
  }
  put(stage, `${doc}/copyright`, template('copyright'));
  put(stage, `${doc}/NEWS.gz`, compressed(readFileSync(join(root, 'CHANGELOG.md'))));
  const date = new Date(seconds * 1000).toUTCString().replace('GMT', '+0000');
  const changelog = `gpd (${version}) unstable; urgency=medium\n\n  * What is new: NEWS.gz, beside this file.\n\n -- ${maintainer()}  ${date}\n`;
  put(stage, `${doc}/changelog.gz`, compressed(changelog));
  for (const name of readdirSync(join(root, 'docs', 'man')).sort()) {
    const page = readFileSync(join(root, 'docs', 'man', name));
    put(stage, `/usr/share/man/man${name.slice(-1)}/${name}.gz`, compressed(page));
  }
}

/** @param {string} stage */
function putCompletions(stage) {
  const places = {
    bash: 'bash-completion/completions/gpd',
    zsh: 'zsh/vendor-completions/_gpd',
    fish: 'fish/vendor_completions.d/gpd.fish',
  };
  for (const [shell, place] of Object.entries(places)) {
    put(
      stage,
      `/usr/share/${place}`,
      read(process.execPath, [join(root, 'bin', 'gpd'), 'completion', shell]),
    );
  }
}

/** As Debian's own tools name who builds. */
function maintainer() {
  const { DEBFULLNAME = 'gpd maintainers', DEBEMAIL = 'maintainers@gpd.dev' } = process.env;
  return `${DEBFULLNAME} <${DEBEMAIL}>`;
}

/**
 * The libraries that the one native module wants, in the words of this distribution.
 * @param {string} stage
 */
function libraries(stage) {
  const scratch = mkdtempSync(join(tmpdir(), 'gpd-shlibs-'));
  try {
    mkdirSync(join(scratch, 'debian'));
    writeFileSync(join(scratch, 'debian', 'control'), 'Source: gpd\n\nPackage: gpd\nArchitecture: any\n');
    const found = read('dpkg-shlibdeps', ['--warnings=0', '-O', join(stage, NATIVE)], { cwd: scratch });
    return found.trim().replace(/^shlibs:Depends=/, '');
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

/**
 * @param {string} stage
 * @returns {string[]} files from its root, sorted, without DEBIAN
 */
function filesOf(stage) {
  const all = readdirSync(stage, { recursive: true, withFileTypes: true });
  return all
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(stage.length + 1))
    .filter((name) => !name.startsWith('DEBIAN/'))
    .sort();
}

/**
 * @param {string} stage
 * @param {{ version: string, architecture: string, libraries: string }} facts
 */
function putControl(stage, facts) {
  const files = filesOf(stage);
  const kilobytes = files.reduce(
    (sum, name) => sum + Math.ceil(readFileSync(join(stage, name)).length / 1024),
    0,
  );
  const fields = {
    Package: 'gpd',
    Version: facts.version,
    Section: 'web',
    Priority: 'optional',
    Architecture: facts.architecture,
    Maintainer: maintainer(),
    'Installed-Size': kilobytes,
    Depends: `${facts.libraries}, nodejs (>= ${String(manifest.engines.node).replace(/^>=|\.0$/g, '')}), adduser`,
    Recommends: 'ca-certificates',
    Suggests: 'nginx | caddy, postgresql-client',
    Description: `device identification with consent that can be proven
 gpd recognises devices and tells people from automation, on your own machine
 and only with consent. A consent ledger beside it answers whether a processing
 is allowed, with a proof that public tools verify.`,
  };
  put(
    stage,
    '/DEBIAN/control',
    Object.entries(fields)
      .map(([name, value]) => `${name}: ${value}\n`)
      .join(''),
  );
  put(stage, '/DEBIAN/conffiles', '/etc/gpd/gpd.toml\n');
  const sums = files
    .filter((name) => !name.startsWith('etc/'))
    .map(
      (name) =>
        `${createHash('md5')
          .update(readFileSync(join(stage, name)))
          .digest('hex')}  ${name}\n`,
    );
  put(stage, '/DEBIAN/md5sums', sums.join(''));
  for (const script of ['preinst', 'postinst', 'prerm', 'postrm']) {
    put(stage, `/DEBIAN/${script}`, template(script), 0o755);
  }
}

/**
 * @param {string} out
 * @param {string} version
 * @returns {string} the file
 */
function build(out, version) {
  const seconds = epoch();
  const architecture = read('dpkg', ['--print-architecture']).trim();
  const scratch = mkdtempSync(join(tmpdir(), 'gpd-deb-'));
  const stage = join(scratch, 'stage');
  try {
    mkdirSync(stage, { mode: 0o755 });
    makeTree(join(stage, HOME));
    read('strip', ['--strip-unneeded', '--remove-section=.comment', join(stage, NATIVE)]);
    // Apache's text is Debian's own; `copyright` names it.
    rmSync(join(stage, HOME, 'LICENSE'));
    put(stage, '/usr/bin/gpd', template('gpd'), 0o755);
    put(stage, '/etc/gpd/gpd.toml', template('gpd.toml'));
    put(stage, '/usr/share/lintian/overrides/gpd', template('lintian-overrides'));
    putUnits(stage);
    putDocs(stage, version, seconds);
    putCompletions(stage);
    putControl(stage, { version, architecture, libraries: libraries(stage) });
    for (const name of readdirSync(stage, { recursive: true, encoding: 'utf8' })) {
      lutimesSync(join(stage, name), seconds, seconds);
    }
    const made = join(scratch, `gpd_${version}_${architecture}.deb`);
    const env = { ...process.env, SOURCE_DATE_EPOCH: String(seconds), DPKG_DEB_THREADS_MAX: '1' };
    read('dpkg-deb', ['--root-owner-group', '-Zxz', '--build', stage, made], { env });
    mkdirSync(out, { recursive: true });
    const file = join(out, basename(made));
    copyFileSync(made, file);
    return file;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

process.umask(0o022);
const { values } = parseArgs({ options: { out: { type: 'string' }, version: { type: 'string' } } });
const file = build(resolve(values.out ?? join(root, 'dist')), values.version ?? manifest.version);
process.stdout.write(`${file}\n`);
