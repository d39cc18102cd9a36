import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, it } from 'vitest';
import { missingPackages } from '../../bin/tools.mjs';
import { tempDir } from '../support/command.ts';
import { describeWithTool } from '../support/tools.ts';

/** `npm run release`, on a clone of this commit with the packages that are installed here. */

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const HALF_AN_HOUR = 1_800_000;
const tools = new Set([
  'build-essential',
  'python3-venv',
  'golang-go',
  'maven',
  'default-jdk-headless',
  'help2man',
]);
const missing = missingPackages().filter(({ name }) => tools.has(name));

const run = (cwd: string, file: string, ...args: readonly string[]): string =>
  execFileSync(file, args, { cwd, encoding: 'utf8', maxBuffer: 1 << 26, stdio: ['ignore', 'pipe', 'pipe'] });

function createClone(): string {
  // A hard link does not reach across file systems.
  const folder = mkdtempSync('/var/tmp/gpd-release-');
  run('/', 'git', 'clone', '--quiet', PROJECT, folder);
  run(
    '/',
    'sh',
    '-c',
    'cp -al "$0/node_modules" "$1" 2>/dev/null || cp -a "$0/node_modules" "$1"',
    PROJECT,
    folder,
  );
  return folder;
}

describeWithTool(
  'a release',
  missing.length === 0 ? null : `not installed: ${missing.map(({ name }) => name).join(', ')}`,
  () => {
    let clone = '';
    let version = '';
    const key = join(tempDir('key'), 'key.pem');
    const make = (out: string, env: Readonly<Record<string, string>>, ...args: readonly string[]) =>
      spawnSync(
        'sh',
        [
          '-c',
          'umask "$UMASK" && exec npm run --silent release -- "$@"',
          'sh',
          version,
          '--dry-run',
          '--out',
          out,
          ...args,
        ],
        {
          cwd: clone,
          encoding: 'utf8',
          env: { ...process.env, UMASK: '022', ...env },
        },
      );
    const sums = (out: string): string => readFileSync(join(out, 'SHA256SUMS'), 'utf8');
    const [first, second] = [tempDir('first'), tempDir('second')];

    beforeAll(() => {
      clone = createClone();
      version = (JSON.parse(readFileSync(join(clone, 'package.json'), 'utf8')) as { version: string })
        .version;
      run('/', 'openssl', 'genpkey', '-algorithm', 'ed25519', '-out', key);
      return () => run('/', 'rm', '-rf', clone);
    });

    it('has every artefact, and each works in an empty folder', { timeout: HALF_AN_HOUR }, () => {
      const { status, stderr } = make(first, {}, '--key', key);
      expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
      expect(stderr.match(/^release: ok: .*$/gm)).toHaveLength(13);
      const named = sums(first).match(/\S+$/gm) ?? [];
      expect([...named, 'SHA256SUMS', 'SHA256SUMS.pub', 'SHA256SUMS.sig']).toEqual(
        expect.arrayContaining(readdirSync(first)),
      );
    });

    it('is signed, and says what it was made of', () => {
      const words = [
        '-verify',
        '-pubin',
        '-inkey',
        'SHA256SUMS.pub',
        '-rawin',
        '-in',
        'SHA256SUMS',
        '-sigfile',
        'SHA256SUMS.sig',
      ];
      expect(run(first, 'openssl', 'pkeyutl', ...words)).toMatch(/Verified Successfully/);
      const statement = readFileSync(join(first, `gpd-${version}-provenance.json`), 'utf8');
      expect(JSON.parse(statement)).toMatchObject({
        predicateType: 'https://slsa.dev/provenance/v1',
        subject: expect.arrayContaining(
          (sums(first).match(/^\S+ {2}\S+$/gm) ?? [])
            .map((line) => line.split('  '))
            .filter(([, name]) => !name?.endsWith('-provenance.json'))
            .map(([sha256, name]) => ({ name, digest: { sha256 } })),
        ) as object,
      });
    });

    it('is the same, byte for byte, whoever makes it', { timeout: HALF_AN_HOUR }, () => {
      const elsewhere = {
        UMASK: '077',
        TZ: 'Pacific/Apia',
        LANG: 'tr_TR.UTF-8',
        TMPDIR: tempDir('elsewhere'),
      };
      const { status, stderr } = make(second, elsewhere, '--no-smoke');
      expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' });
      expect(stderr).toContain('UNSIGNED');
      expect(sums(second)).toBe(sums(first));
    });

    it('is refused for another version, and of changes that no commit has', () => {
      writeFileSync(join(clone, 'README.md'), 'another');
      const words = ['run', '--silent', 'release', '--', '9.9.9'];
      const { status, stderr } = spawnSync('npm', words, { cwd: clone, encoding: 'utf8' });
      expect(status).toBe(1);
      for (const reason of ['pom.xml says', 'the work tree has changes', 'CHANGELOG.md has no', 'no --key'])
        expect(stderr).toContain(reason);
    });
  },
);
