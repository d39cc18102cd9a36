#!/usr/bin/env node
// `npm run sbom`: a CycloneDX SBOM of what is installed with `--omit=dev`, on standard output, from the lock file alone.
// `npm sbom --omit dev` leaves out what a development dependency needs as well (npm 11: pg, ms and 28 more), so all
// packages are asked for and the lock file says which are installed.
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
const asked = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only'];
const npm = process.env['npm_execpath'];
const [program, args] = npm ? [process.execPath, [npm, ...asked]] : ['npm', asked];
const ran = spawnSync(program, args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 });
if (ran.status !== 0) {
  process.stderr.write(ran.stderr);
  process.exit(ran.status ?? 1);
}

const installed = new Set(
  Object.entries(/** @type {Record<string, Locked>} */ (lock.packages))
    .filter(([path, { dev, devOptional, link }]) => path !== '' && !dev && !devOptional && !link)
    .map(
      ([path, { name, version }]) =>
        `${name ?? path.slice(path.lastIndexOf('node_modules/') + 13)}@${version}`,
    ),
);
const sbom = JSON.parse(ran.stdout);
/** @type {Component} */
const self = sbom.metadata.component;
// npm takes the folder's name.
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
// npm takes a random number: one lock file gives one list, with SOURCE_DATE_EPOCH byte for byte.
const hash = createHash('sha256').update(JSON.stringify(lock)).digest('hex');
sbom.serialNumber = `urn:uuid:${hash.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*/, '$1-$2-4$3-8$4-$5')}`;
const epoch = process.env['SOURCE_DATE_EPOCH'];
if (epoch !== undefined) sbom.metadata.timestamp = new Date(Number(epoch) * 1000).toISOString();
process.stdout.write(`${JSON.stringify(sbom, null, 2)}\n`);
