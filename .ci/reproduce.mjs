// Builds this commit twice, in folders with different languages, time zones and homes, and compares all bytes of the packaged files.
// `npm pack` keeps file modes, so both use umask 022. usage: node .ci/reproduce.mjs
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), 'gpd-reproduce-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));

function run(command, args, options) {
  const result = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 28, ...options });
  if (result.status === 0) return result.stdout;
  process.stderr.write(`${result.stdout}${result.stderr}`);
  throw new Error(`${command} ${args.join(' ')} ended with ${result.status}`);
}

/** Writes the files of the commit into a folder, with the node_modules of this clone. */
function checkOut(folder) {
  mkdirSync(folder, { recursive: true });
  const files = execFileSync('git', ['archive', '--format=tar', 'HEAD'], { cwd: root, maxBuffer: 1 << 30 });
  run('sh', ['-c', 'umask 022 && tar -x'], { cwd: folder, input: files });
  const linked = spawnSync('cp', ['-al', join(root, 'node_modules'), folder]);
  if (linked.status !== 0) {
    rmSync(join(folder, 'node_modules'), { recursive: true, force: true });
    run('cp', ['-a', join(root, 'node_modules'), folder], {});
  }
}

const digest = (bytes) => createHash('sha256').update(bytes).digest('hex');

function filesOf(folder, under) {
  const found = new Map();
  for (const entry of readdirSync(join(folder, under), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    found.set(relative(folder, path), digest(readFileSync(path)));
  }
  return found;
}

const places = [
  { folder: join(scratch, 'a'), env: { TZ: 'UTC', LANG: 'C', LC_ALL: 'C' } },
  {
    folder: join(scratch, 'another', 'deeper place'),
    env: { TZ: 'Pacific/Apia', LANG: 'tr_TR.UTF-8', LC_ALL: 'tr_TR.UTF-8', HOME: scratch },
  },
];

const results = places.map(({ folder, env }) => {
  checkOut(folder);
  const options = { cwd: folder, env: { ...process.env, ...env, npm_config_cache: join(scratch, 'cache') } };
  run('sh', ['-c', 'umask 022 && node bin/bootstrap.mjs build'], options);
  run(process.execPath, ['--import', 'tsx', 'bin/gen/main.ts'], options);
  const files = new Map();
  for (const part of ['dist', 'docs', 'views', 'migrations', 'systemd']) {
    for (const [path, hash] of filesOf(folder, part)) files.set(path, hash);
  }
  const [{ filename }] = JSON.parse(run('npm', ['pack', '--json', '--ignore-scripts'], options));
  files.set('npm pack', digest(readFileSync(join(folder, filename))));
  return files;
});

const [first, second] = results;
const names = new Set([...first.keys(), ...second.keys()]);
const other = [...names].filter((name) => first.get(name) !== second.get(name));
for (const name of other) console.error(`reproduce: ${name} differs`);
const generated = run('git', ['status', '--porcelain', '--', 'docs'], { cwd: root }).trim();
for (const [path, hash] of filesOf(root, 'docs')) {
  if (first.get(path) !== hash && generated === '') {
    console.error(`reproduce: ${path} is not what this commit generates`);
    other.push(path);
  }
}
console.log(`reproduce: ${names.size} files, ${other.length} differ; npm pack ${first.get('npm pack')}`);
process.exit(other.length === 0 ? 0 : 1);
