import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { missingPackages } from '../tools.mjs';
import {
  createImageContext,
  createNpmPackage,
  createPackages,
  createSbom,
  createSource,
} from './artefacts.ts';
import { signFile, writeProvenance, writeSums } from './provenance.ts';
import { type Place, run, say } from './run.ts';
import { createSdks } from './sdks.ts';
import { trySmokes } from './smoke.ts';
import { otherVersions } from './versions.ts';

/** `npm run release`: creates all artefacts of a version from one commit, reproducibly, and tries each in an empty folder. */

const USAGE = 'usage: npm run release -- VERSION [--dry-run] [--out FOLDER] [--key FILE] [--no-smoke]';
const ROOT = join(import.meta.dirname, '..', '..');
const NEEDED = ['build-essential', 'python3-venv', 'golang-go', 'maven', 'default-jdk-headless', 'help2man'];

const git = (...args: string[]): string => run(ROOT, {}, 'git', ...args);

/** @returns the reasons why this commit cannot be released as this version */
function findProblems(version: string, isDry: boolean, key: string | null): string[] {
  const lacking = missingPackages().filter(({ name }) => NEEDED.includes(name));
  const problems = [
    ...otherVersions(ROOT, version),
    ...lacking.map(({ name }) => `this machine lacks ${name}`),
    ...(git('status', '--porcelain') === ''
      ? []
      : ['the work tree has changes, and a release is of a commit']),
  ];
  if (isDry) return problems;
  const changes = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8');
  if (!changes.includes(`\n## ${version}`)) problems.push(`CHANGELOG.md has no section ${version}`);
  if (key === null) problems.push('there is no --key to sign with');
  if (git('tag', '--list', `v${version}`) !== '') problems.push(`the tag v${version} is there already`);
  return problems;
}

async function createArtefacts(place: Place): Promise<void> {
  say('npm package');
  createNpmPackage(place);
  say('portable archive and Debian package');
  createPackages(place);
  say('image context and SBOM');
  createImageContext(place);
  createSbom(place);
  say('packages of the SDKs');
  await createSdks(place);
}

async function release(version: string, options: { out: string; key: string | null; smoke: boolean }) {
  const { out, key } = options;
  if (existsSync(out) && readdirSync(out).length > 0) throw new Error(`${out} is not empty`);
  mkdirSync(out, { recursive: true });
  const scratch = mkdtempSync(join(tmpdir(), 'gpd-release-'));
  const epoch = Number(git('log', '-1', '--format=%ct'));
  const plan = { out, scratch, version, commit: git('rev-parse', 'HEAD'), epoch };
  try {
    say('source archive and build');
    const place = { ...plan, source: createSource(plan) };
    await createArtefacts(place);
    writeProvenance(place);
    signFile(writeSums(out), key);
    if (options.smoke) await trySmokes(place);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      'dry-run': { type: 'boolean', default: false },
      'no-smoke': { type: 'boolean', default: false },
      out: { type: 'string' },
      key: { type: 'string' },
    },
  });
  const [version, ...rest] = positionals;
  if (version === undefined || rest.length > 0) throw new Error(USAGE);
  const isDry = values['dry-run'];
  const key = values.key ?? null;
  const problems = findProblems(version, isDry, key);
  if (problems.length > 0) throw new Error(`no release of ${version}:\n  ${problems.join('\n  ')}`);
  // npm, hatchling and zip store the modes of files, which must not depend on the caller's umask.
  process.umask(0o022);
  process.env['TZ'] = 'UTC';
  const out = resolve(values.out ?? join('dist', 'release', version));
  await release(version, { out, key, smoke: !values['no-smoke'] });
  for (const name of readdirSync(out).sort())
    process.stdout.write(`${String(statSync(join(out, name)).size).padStart(10)}  ${name}\n`);
  if (!isDry) git('tag', '--annotate', '--message', `gpd ${version}`, `v${version}`);
}

main().catch((error: unknown) => {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
});
