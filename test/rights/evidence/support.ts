import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type Api, PURPOSE, startApi } from '../../consent/app/support/api.ts';
import { runGpd, tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';

/** A tenant with choices of several people, and its evidence. */

const DAY = 86_400_000;
export const day = (offset: number): string => new Date(Date.now() + offset * DAY).toISOString().slice(0, 10);
/** Today and yesterday, so that midnight falls into it. */
export const PERIOD = ['--from', day(-1), '--to', day(2)] as const;
export const QUERY = `from=${day(-1)}&to=${day(2)}`;

export const ALICE = 'alice@example.org';
export const OTHERS = ['bob-4711', 'carol-4712', 'dave-4713'] as const;
/** Their record is erased in the period. */
export const ERASED = 'erin-4714';

export type People = Awaited<ReturnType<typeof startWithPeople>>;

export async function startWithPeople(options: Parameters<typeof startApi>[0] = {}) {
  const api: Api = await startApi({ purposes: [{ id: 'analytics' }], ...options });
  const cli = (...args: readonly string[]) => runGpd([...args], { env: { GPD_DATA_DIR: api.gpd.dataDir } });
  const named = ['notice.controller=Acme Ltd', 'notice.contact=dpo@acme.example'];
  expect(await cli('tenants', 'set', KID, ...named)).toMatchObject({ code: 0 });
  const policy = { text: 'We measure visits, and nothing else.', material: true };
  expect((await api.post('/v1/consent/policies', policy, api.keys.operator)).status).toBe(201);
  const purposes = [{ id: 'news', title: 'Newsletter', description: 'A mail a month.', gpc: 'ask' }];
  expect((await sendJson(api, '/v1/consent/purposes', { purposes })).status).toBeLessThan(300);
  expect((await api.get('/v1/consent/banner', api.keys.publishable)).status).toBe(200);
  for (const principalId of [ALICE, ...OTHERS, ERASED]) {
    await api.write('grant', { principalId, purposes: [PURPOSE, 'news'], policyVersion: 1 });
    await api.write('withdraw', { principalId, purposes: ['news'] });
  }
  await api.write('deny', { principalId: ALICE, gpc: true });
  const erased = await cli('erase', '--tenant', KID, '--principal', ERASED, '--yes');
  expect(erased).toMatchObject({ code: 0 });
  return { api, cli };
}

async function sendJson(api: Api, path: string, body: unknown) {
  const response = await fetch(`${api.gpd.url}${path}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${api.keys.operator}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  await response.arrayBuffer();
  return response;
}

/** The parts of a file by their names, unpacked by Info-ZIP. */
export function unpackParts(archive: string) {
  const directory = tempDir('evidence');
  const { status, stderr } = spawnSync('unzip', ['-q', archive, '-d', directory], { encoding: 'utf8' });
  expect([status, stderr]).toEqual([0, '']);
  const names = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name).slice(directory.length + 1));
  const parts = new Map(names.map((name) => [name, readFileSync(join(directory, name))]));
  return { directory, parts };
}

export const linesOf = (part: Buffer | undefined): readonly Record<string, unknown>[] =>
  (part ?? Buffer.alloc(0))
    .toString()
    .split('\n')
    .filter((one) => one !== '')
    .map((one) => JSON.parse(one) as Record<string, unknown>);

export function verifyFolder(directory: string, ...args: readonly string[]) {
  const script = join(directory, 'verify.py');
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1', PYTHONIOENCODING: 'utf-8' };
  const { status, stdout, stderr } = spawnSync('python3', [script, ...args], { env, encoding: 'utf8' });
  return { status, stdout, stderr };
}

/** Runs a program for each of its arguments, in one Python: its start and the package take longer than a verification. */
const FOR_EACH = `
import contextlib, io, json, runpy, sys
script, *folders = sys.argv[1:]
for folder in folders:
    sys.argv = [script, folder]
    text = io.StringIO()
    status = 0
    with contextlib.redirect_stdout(text):
        try:
            runpy.run_path(script, run_name='__main__')
        except SystemExit as end:
            status = end.code or 0
    print(json.dumps([status, text.getvalue()]))
`;

/** Verifies each folder with the program of the first argument. @returns status and output of each */
export function verifyFolders(
  script: string,
  folders: readonly string[],
): [status: number, stdout: string][] {
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1', PYTHONIOENCODING: 'utf-8' };
  const args = ['-c', FOR_EACH, script, ...folders];
  const { stdout, stderr } = spawnSync('python3', args, { env, encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as [number, string]);
}
