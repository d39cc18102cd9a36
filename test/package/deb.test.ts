import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { isBuilt, isLoaded, missingBuild, runtimePackages } from '../../packaging/tree.mjs';
import { tempDir } from '../support/command.ts';
import { describeWithTool } from '../support/tools.ts';
import { inLayer, missingLayer } from './layer.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const STORY = fileURLToPath(new URL('story.sh', import.meta.url));
const BUILDER = join(PROJECT, 'packaging/deb.sh');

function missing(...tools: string[]): string | null {
  const absent = tools.filter((tool) => spawnSync('sh', ['-c', `command -v ${tool}`]).status !== 0);
  return absent.length === 0 ? null : `not installed: ${absent.join(', ')}`;
}

/** Builds as somebody else would: another place for scratch files, another umask, another time zone. */
function build(version: string, env: Readonly<Record<string, string>> = {}): string {
  const command = `umask ${env['UMASK'] ?? '022'}; exec "$0" "$@"`;
  const args = ['sh', BUILDER, '--out', tempDir('deb'), '--version', version];
  return execFileSync('sh', ['-c', command, ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}

const digest = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');
const deb = (...args: string[]): string =>
  execFileSync('dpkg-deb', args, { encoding: 'utf8', maxBuffer: 1 << 26 });

describe('what runs', () => {
  it('holds nothing of development', () => {
    const lock = JSON.parse(readFileSync(join(PROJECT, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { dev?: boolean; dependencies?: Record<string, string> }>;
    };
    const found = runtimePackages(lock.packages);
    expect(found.length).toBeGreaterThan(100);
    expect(found.filter((path) => lock.packages[path]?.dev)).toEqual([]);
    // The demo needs the second one.
    expect(found).toEqual(expect.arrayContaining(['node_modules/sqlite3', 'node_modules/oidc-provider']));
  });

  it('is refused when the lock does not name it, and before there is a build', () => {
    expect(() => runtimePackages({ '': { dependencies: { gone: '1' } } })).toThrow(/names no gone/);
    expect(missingBuild(tempDir('empty'))).toMatch(/dist\/cli\/main\.js is missing: `npm run build` first/);
  });

  it.each([
    ['node_modules/a/LICENSE.md', true],
    ['node_modules/a/README.md', false],
    ['node_modules/sqlite3/build/Release/node_sqlite3.node', true],
    ['node_modules/sqlite3/build/Release/obj.target/x.node', false],
    ['node_modules/es-toolkit/dist/compat/index.mjs', true],
    ['node_modules/es-toolkit/dist/compat/index.js', false],
    ['dist/cli/main.js', true],
    // GET /v1/embed.d.ts sends it.
    ['dist/banner/embed.d.ts', true],
    // A package must not contain what `npm run package:deb`, `package:archive` and `release` put there before.
    ['dist/gpd_0.1.0_amd64.deb', false],
    ['dist/gpd-0.1.0-linux-x64.tar.gz', false],
    ['dist/release/0.1.0/sbom.json', false],
  ])('%s: %s', (path, expected) => {
    expect(path.startsWith('dist/') ? isBuilt(path) : isLoaded(path)).toBe(expected);
  });
});

describeWithTool('the Debian package', missing('dpkg-deb', 'dpkg-shlibdeps', 'strip', 'help2man'), () => {
  let file = '';
  let newer = '';
  beforeAll(() => {
    file = build('0.1.0');
    newer = build('0.1.1', { SOURCE_DATE_EPOCH: '1800000000' });
  }, 1_200_000);

  it('is the same file, byte for byte, whoever builds it', { timeout: 600_000 }, () => {
    const elsewhere = mkdtempSync(join(tempDir('tmp'), 'x'));
    const again = build('0.1.0', { TMPDIR: elsewhere, UMASK: '077', TZ: 'Pacific/Auckland', LANG: 'C' });
    expect(digest(again)).toBe(digest(file));
  });

  it('belongs to root, and nobody else may write in it', () => {
    const lines = deb('--contents', file).trim().split('\n');
    expect(lines.length).toBeGreaterThan(1000);
    expect(lines.filter((line) => !/^(?:drwxr-xr-x|-rw-r--r--|-rwxr-xr-x) root\/root /.test(line))).toEqual(
      [],
    );
    const programs = lines.filter((line) => line.startsWith('-rwx')).map((line) => line.split(' ./')[1]);
    expect(programs).toEqual(['usr/bin/gpd', 'usr/lib/gpd/bin/gpd']);
  });

  it('holds no tool, no type, no source and nothing of this machine', () => {
    const names = deb('--contents', file)
      .split('\n')
      .map((line) => line.split(' ./')[1] ?? '');
    expect(
      names.filter((name) => /node_modules\/(?:typescript|vitest|esbuild|node-gyp|tar)\//.test(name)),
    ).toEqual([]);
    expect(names.filter((name) => /\.(?:ts|tsx|map|tsbuildinfo)$/.test(name))).toEqual([]);
    const folder = tempDir('unpacked');
    execFileSync('dpkg-deb', ['-R', file, folder]);
    const found = spawnSync('grep', ['-rlF', '-e', PROJECT, '-e', `${tmpdir()}/gpd-`, folder], {
      encoding: 'utf8',
    });
    expect(found.stdout).toBe('');
    expect(readFileSync(join(folder, 'usr/share/doc/gpd/verify.py'))).toEqual(
      readFileSync(join(PROJECT, 'docs/verify.py')),
    );
    const sums = spawnSync('md5sum', ['--quiet', '-c', 'DEBIAN/md5sums'], { cwd: folder, encoding: 'utf8' });
    expect(sums).toMatchObject({ status: 0, stdout: '' });
  });

  it('is of the time that SOURCE_DATE_EPOCH says', () => {
    expect(deb('--contents', newer)).toMatch(/ 2027-01-15 \d\d:\d\d .\/usr\/bin\/gpd$/m);
  });

  it('says what it needs', () => {
    const field = (name: string): string => deb('--field', file, name).trim();
    expect(field('Depends')).toMatch(/^libc6 \(>= [\d.]+\), .*nodejs \(>= 20\.19\), adduser$/);
    expect(field('Architecture')).toBe(
      execFileSync('dpkg', ['--print-architecture'], { encoding: 'utf8' }).trim(),
    );
  });

  describeWithTool('lintian', missing('lintian'), () => {
    it('has nothing to say', { timeout: 900_000 }, () => {
      const { status, stdout } = spawnSync('lintian', ['--allow-root', '--fail-on', 'warning', file], {
        encoding: 'utf8',
      });
      expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
    });
  });

  describeWithTool(
    'on a machine',
    missingLayer(['dpkg', 'systemd-analyze', 'curl', 'setpriv', 'adduser']),
    () => {
      it('is installed, used, upgraded, removed, installed again and purged', {
        timeout: 900_000,
      }, async () => {
        const env = { DEB: '', NEWER: '', PORT: String(28_000 + (process.pid % 2000)) };
        // A layer has a /tmp of its own.
        const keep = mkdtempSync(join('/var/tmp', 'gpd-deb-'));
        try {
          for (const [name, source] of [
            ['DEB', file],
            ['NEWER', newer],
          ] as const) {
            env[name] = join(keep, `${name}.deb`);
            execFileSync('cp', [source, env[name]]);
          }
          const { code, output } = await inLayer(`. ${STORY}`, env);
          expect(output).toContain('== followed');
          expect({ code, output: code === 0 ? '' : output }).toEqual({ code: 0, output: '' });
          expect(output).toMatch(/\d+ checks, 0 fail/);
          expect(output.match(/^(?:200|302|303) \//gm)).toHaveLength(5);
        } finally {
          execFileSync('rm', ['-rf', keep]);
        }
      });
    },
  );
});
