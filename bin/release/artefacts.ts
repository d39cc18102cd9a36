import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fixedEnvironment, type Place, run } from './run.ts';

/** Creates the artefacts of gpd itself. Each is made from the unpacked source archive, never from the work tree. */

const ROOT = join(import.meta.dirname, '..', '..');

const packCommand = (prefix: string, paths: string): string =>
  `tar --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mode=go-w --mtime="@$SOURCE_DATE_EPOCH" \
  --transform='s,^,${prefix}/,' -cf - ${paths} | xz -6 -T1`;

/** Writes the source archive, then unpacks and builds it with the packages that are installed here. @returns the built folder */
export function createSource(place: Omit<Place, 'source'>): string {
  const { out, scratch, version, commit, epoch } = place;
  const name = `gpd-${version}`;
  const file = join(out, `${name}-source.tar.xz`);
  const env = fixedEnvironment(epoch);
  // With a fixed umask, the file modes in the archive do not depend on the caller.
  const archive = `git -c tar.umask=0022 archive --format=tar --prefix=${name}/ ${commit} | xz -6 -T1 > "$1"`;
  run(ROOT, env, 'sh', '-c', archive, 'sh', file);
  run(scratch, env, 'sh', '-c', 'umask 022 && tar -xf "$1"', 'sh', file);
  const source = join(scratch, name);
  run(ROOT, env, 'cp', '-al', 'node_modules', source);
  run(source, env, 'sh', '-c', 'umask 022 && node bin/bootstrap.mjs build');
  return source;
}

export function createNpmPackage({ source, out, epoch }: Place, folder = '.'): void {
  const npmArguments = ['pack', '--silent', '--pack-destination', out];
  run(join(source, folder), fixedEnvironment(epoch), 'npm', ...npmArguments);
}

/** Creates the portable archive and the Debian package, both with the tree of packaging/tree.mjs. */
export function createPackages({ source, out, epoch, version }: Place): void {
  for (const script of ['packaging/archive.sh', 'packaging/deb.sh'])
    run(source, fixedEnvironment(epoch), 'sh', script, '--out', out, '--version', version);
}

/** Creates an archive with the context of `docker build` and the compose file. */
export function createImageContext({ source, out, epoch, version }: Place): void {
  const included = readFileSync(join(source, 'packaging/Containerfile.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1));
  const paths = [
    ...included,
    'packaging/Containerfile',
    'packaging/Containerfile.dockerignore',
    'compose.yaml',
  ];
  const name = `gpd-${version}-image`;
  const command = `${packCommand(name, '"$@"')} > "${join(out, name)}.tar.xz"`;
  run(source, fixedEnvironment(epoch), 'sh', '-c', command, 'sh', ...paths);
}

export function createSbom({ source, out, epoch, version }: Place): void {
  const sbom = run(source, fixedEnvironment(epoch), 'node', 'bin/sbom.mjs');
  writeFileSync(join(out, `gpd-${version}-sbom.cdx.json`), `${sbom}\n`);
}

/** Creates a temporary folder for one step. */
export function newFolder({ scratch }: Pick<Place, 'scratch'>, name: string): string {
  return mkdtempSync(join(scratch, `${name}-`));
}

/** Copies an SDK to a folder that its tools may write to. */
export function copySdk(place: Place, language: string): string {
  const folder = newFolder(place, language);
  mkdirSync(folder, { recursive: true });
  cpSync(join(place.source, 'sdk', language), folder, {
    recursive: true,
    filter: (path) => !existsSync(path) || !/\/(?:node_modules|target|\.venv)$/.test(path),
  });
  return folder;
}
