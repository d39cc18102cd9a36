#!/usr/bin/env node
// `npm run sbom`: prints a CycloneDX SBOM (https://cyclonedx.org) of the packages that `--omit=dev` installs, from the lock file.
// `npm sbom --omit dev` leaves out packages that a development dependency needs too (npm 11: pg, ms and 28 more), so this lists all
// packages and filters them by the lock file.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * @typedef {{ 'bom-ref': string, name: string, version: string, type?: string }} Component
 * @typedef {{ name?: string, version: string, dev?: boolean, devOptional?: boolean, link?: boolean }} Locked
 */

const root = fileURLToPath(new URL('..', import.meta.url));
const lock = JSON.parse(readFileSync(`${root}/package-lock.json`, 'utf8'));
const sbomArguments = [
  'sbom',
  '--sbom-format',
  'cyclonedx',
  '--sbom-type',
  'application',
  '--package-lock-only',
];
const npm = process.env['npm_execpath'];
const [program, args] = npm ? [process.execPath, [npm, ...sbomArguments]] : ['npm', sbomArguments];
const result = spawnSync(program, args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 });
if (result.status !== 0) {
  process.stderr.write(result.stderr);
  process.exit(result.status ?? 1);
}

const installed = new Set(
  Object.entries(/** @type {Record<string, Locked>} */ (lock.packages))
    .filter(([path, { dev, devOptional, link }]) => path !== '' && !dev && !devOptional && !link)
    .map(
      ([path, { name, version }]) =>
        `${name ?? path.slice(path.lastIndexOf('node_modules/') + 13)}@${version}`,
    ),
);
const sbom = JSON.parse(result.stdout);
/** @type {Component} */
const self = sbom.metadata.component;
// npm uses the name of the folder.
self.name = lock.name;
sbom.components = sbom.components.filter((/** @type {Component} */ { name, version }) =>
  installed.has(`${name}@${version}`),
);
const refs = new Set([self['bom-ref'], ...sbom.components.map((/** @type {Component} */ c) => c['bom-ref'])]);
sbom.dependencies = sbom.dependencies
  .filter((/** @type {{ ref: string }} */ { ref }) => refs.has(ref))
  .map((/** @type {{ ref: string, dependsOn: string[] }} */ { ref, dependsOn }) => ({
    ref,
    dependsOn: dependsOn.filter((each) => refs.has(each)),
  }));
// npm uses a random number. Derived from the lock file, and with SOURCE_DATE_EPOCH, the SBOM is reproducible byte for byte.
const hash = createHash('sha256').update(JSON.stringify(lock)).digest('hex');
sbom.serialNumber = `urn:uuid:${hash.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*/, '$1-$2-4$3-8$4-$5')}`;
const epoch = process.env['SOURCE_DATE_EPOCH'];
if (epoch !== undefined) sbom.metadata.timestamp = new Date(Number(epoch) * 1000).toISOString();
process.stdout.write(`${JSON.stringify(sbom, null, 2)}\n`);
