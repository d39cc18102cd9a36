#!/usr/bin/env node
// Lists the programs that the tests need besides Node, with their Debian packages. Run as a program, it prints the missing packages
// in one line.
import { spawnSync } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** @param {string[]} names of programs, of which one is enough */
const has = (...names) =>
  (process.env['PATH'] ?? '')
    .split(delimiter)
    .some((folder) => folder !== '' && names.some((name) => existsSync(join(folder, name))));

/**
 * Debian package, the tests that need it, and a check for its programs.
 * @type {readonly (readonly [string, string, () => boolean])[]}
 */
const TOOLS = [
  ['build-essential', 'the build of sqlite3', () => has('c++', 'g++', 'clang++') && has('make', 'gmake')],
  ['python3', 'the build of sqlite3', () => has('python3')],
  [
    'chromium',
    'browsers',
    () => Boolean(process.env['CHROMIUM']) || has('chromium', 'chromium-browser', 'google-chrome'),
  ],
  // Without it the tests use Chromium itself, which takes twice the CPU time.
  [
    'chromium-headless-shell',
    'pages',
    () => Boolean(process.env['CHROMIUM']) || has('chromium-headless-shell'),
  ],
  ['firefox-esr', 'browsers', () => Boolean(process.env['FIREFOX']) || has('firefox-esr', 'firefox')],
  ['webkit2gtk-driver', 'browsers', () => has('WebKitWebDriver')],
  ['xvfb', 'browsers', () => has('Xvfb')],
  ['systemd', 'units and their notices', () => has('systemd-analyze') && has('systemd-notify')],
  ['prometheus', 'alerts', () => has('promtool')],
  ['strace', 'faults of a disk', () => has('strace')],
  ['pgbouncer', 'clusters', () => has('pgbouncer')],
  ['nginx', 'proxies', () => has('nginx')],
  ['caddy', 'proxies', () => has('caddy')],
  ['lintian', 'the package', () => has('lintian')],
  ['help2man', 'the package', () => has('help2man')],
  [
    'python3-venv',
    'the SDK for Python',
    () => spawnSync('python3', ['-c', 'import ensurepip, venv']).status === 0,
  ],
  [
    'python3-cryptography',
    'files of evidence',
    () => spawnSync('python3', ['-c', 'import cryptography']).status === 0,
  ],
  ['golang-go', 'the SDK for Go', () => has('go')],
  ['maven', 'the SDK for Java', () => has('mvn')],
  ['default-jdk-headless', 'the SDK for Java', () => has('javac')],
];

/** @returns {{ name: string, use: string }[]} packages that are not installed */
export function missingPackages() {
  return TOOLS.filter(([, , there]) => !there()).map(([name, use]) => ({ name, use }));
}

if (process.argv[1] && import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) {
  process.stdout.write(
    `${missingPackages()
      .map(({ name }) => name)
      .join(' ')}\n`,
  );
}
