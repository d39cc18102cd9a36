// Compares a CycloneDX SBOM with package-lock.json: it must list exactly the packages that `--omit=dev` installs, with their version
// and the hash that npm checks. usage: node .ci/sbom.mjs SBOM [LOCKFILE]
import { readFileSync } from 'node:fs';

const [file = '', lockFile = 'package-lock.json'] = process.argv.slice(2);
const read = (path) => JSON.parse(readFileSync(path, 'utf8'));
const sbom = read(file);
const { packages, version: lockVersion } = read(lockFile);
const problems = [];
const need = (holds, problem) => {
  if (!holds) problems.push(problem);
};

need(sbom.bomFormat === 'CycloneDX', 'bomFormat is not CycloneDX');
need(/^1\.[5-9]$/.test(sbom.specVersion), `specVersion ${sbom.specVersion}`);
need(
  /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(sbom.serialNumber),
  'serialNumber is no UUID',
);
need(!Number.isNaN(Date.parse(sbom.metadata?.timestamp)), 'no time');
need(
  sbom.metadata?.component?.name === packages[''].name && sbom.metadata.component.version === lockVersion,
  'it is not of this program',
);

const nameOf = (path, entry) => entry.name ?? path.slice(path.lastIndexOf('node_modules/') + 13);
const keyOf = (name, version) => `${name}@${version}`;
/** npm writes hashes in base64, CycloneDX in hexadecimal. */
const hashOf = (integrity) =>
  Buffer.from(integrity.replace(/^sha512-/, '').split(' ')[0], 'base64').toString('hex');

const expected = new Map();
for (const [path, entry] of Object.entries(packages)) {
  if (path === '' || entry.dev || entry.devOptional || entry.link) continue;
  expected.set(keyOf(nameOf(path, entry), entry.version), hashOf(entry.integrity ?? ''));
}

const found = new Map();
const refs = new Set([sbom.metadata?.component?.['bom-ref']]);
for (const component of sbom.components ?? []) {
  const { name, version, purl, hashes = [], type } = component;
  const key = keyOf(name, version);
  need(!found.has(key), `${key} is there twice`);
  found.set(key, hashes.find(({ alg }) => alg === 'SHA-512')?.content ?? '');
  refs.add(component['bom-ref']);
  const at = `@${version}`;
  need(
    type === 'library' && purl?.startsWith('pkg:npm/') && purl.endsWith(at) && !purl.includes('://'),
    `${key}: its purl is not of npm`,
  );
}
for (const [key, hash] of expected) {
  if (!found.has(key)) problems.push(`${key} is installed and not in the SBOM`);
  else need(found.get(key) === hash, `${key}: another hash than the lock file's`);
}
for (const key of found.keys()) need(expected.has(key), `${key} is in the SBOM and not installed`);
for (const { ref, dependsOn = [] } of sbom.dependencies ?? []) {
  for (const each of [ref, ...dependsOn])
    need(refs.has(each), `dependencies name ${each}, which is no component`);
}
need((sbom.dependencies ?? []).length > expected.size / 2, 'it does not say who depends on whom');

for (const problem of problems.slice(0, 20)) console.error(`sbom: ${problem}`);
console.log(`sbom: CycloneDX ${sbom.specVersion}, ${found.size} components, ${problems.length} problems`);
process.exit(problems.length === 0 ? 0 : 1);
