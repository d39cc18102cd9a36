import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fixedEnvironment, type Place, run } from './run.ts';

/** What a release has of gpd itself. Each is made of the unpacked source archive, never of the work tree. */

const ROOT = join(import.meta.dirname, '..', '..');

const pack = (prefix: string, paths: string): string =>
  `tar --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mode=go-w --mtime="@$SOURCE_DATE_EPOCH" \
  --transform='s,^,${prefix}/,' -cf - ${paths} | xz -6 -T1`;

/** The source archive, and beside the other places its content, built with the packages that are installed here. */
export function createSource(place: Omit<Place, 'source'>): string {
  const { out, scratch, version, commit, epoch } = place;
  const name = `gpd-${version}`;
  const file = join(out, `${name}-source.tar.xz`);
  const env = fixedEnvironment(epoch);
  // umask: git writes what tar shall write whoever calls it.
  const archive = `git -c tar.umask=0022 archive --format=tar --prefix=${name}/ ${commit} | xz -6 -T1 > "$1"`;
  run(ROOT, env, 'sh', '-c', archive, 'sh', file);
  run(scratch, env, 'sh', '-c', 'umask 022 && tar -xf "$1"', 'sh', file);
  const source = join(scratch, name);
  run(ROOT, env, 'cp', '-al', 'node_modules', source);
  run(source, env, 'sh', '-c', 'umask 022 && node bin/bootstrap.mjs build');
  return source;
}

export function createNpmPackage({ source, out, epoch }: Place, folder = '.'): void {
  const words = ['pack', '--silent', '--pack-destination', out];
  run(join(source, folder), fixedEnvironment(epoch), 'npm', ...words);
}

/** The portable archive and the Debian package: the tree of packaging/tree.mjs. */
export function createPackages({ source, out, epoch, version }: Place): void {
  for (const script of ['packaging/archive.sh', 'packaging/deb.sh'])
    run(source, fixedEnvironment(epoch), 'sh', script, '--out', out, '--version', version);
}

/** What `docker build` takes, and the compose file that starts it. */
export function createImageContext({ source, out, epoch, version }: Place): void {
  const kept = readFileSync(join(source, 'packaging/Containerfile.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('!'))
    .map((line) => line.slice(1));
  const paths = [...kept, 'packaging/Containerfile', 'packaging/Containerfile.dockerignore', 'compose.yaml'];
  const name = `gpd-${version}-image`;
  const command = `${pack(name, '"$@"')} > "${join(out, name)}.tar.xz"`;
  run(source, fixedEnvironment(epoch), 'sh', '-c', command, 'sh', ...paths);
}

export function createSbom({ source, out, epoch, version }: Place): void {
  const sbom = run(source, fixedEnvironment(epoch), 'node', 'bin/sbom.mjs');
  writeFileSync(join(out, `gpd-${version}-sbom.cdx.json`), `${sbom}\n`);
}

/** A folder for scratch files of one step. */
export function newFolder({ scratch }: Pick<Place, 'scratch'>, name: string): string {
  return mkdtempSync(join(scratch, `${name}-`));
}

/** A copy of an SDK that its tools may write into. */
export function copySdk(place: Place, language: string): string {
  const folder = newFolder(place, language);
  mkdirSync(folder, { recursive: true });
  cpSync(join(place.source, 'sdk', language), folder, {
    recursive: true,
    filter: (path) => !existsSync(path) || !/\/(?:node_modules|target|\.venv)$/.test(path),
  });
  return folder;
}
