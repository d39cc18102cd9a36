import { spawn } from 'node:child_process';
import { beforeAll, describe, expect, it } from 'vitest';
import { gpdJson, PROGRAM, type Ran, runGpd, spawnTool } from '../../support/command.ts';
import { KID, ORIGIN } from '../../support/constants.ts';
import { initGpd } from '../../support/server.ts';

let dataDir: string;
const env = (): Record<string, string> => ({ GPD_DATA_DIR: dataDir });
const gpd = (args: readonly string[], variables: Record<string, string> = {}): Promise<Ran> =>
  runGpd(args, { env: { ...env(), ...variables } });

beforeAll(async () => {
  dataDir = (await initGpd([{ kid: KID, origins: [ORIGIN] }])).dataDir;
});

// biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character is what is looked for
const ESCAPE = /\u001b/;

it('a stdout that takes nothing is 1 and a sentence, and no stack', async () => {
  const shell = `"${process.execPath}" "${PROGRAM}" tenants list > /dev/full`;
  const { output, exited } = spawnTool('sh', ['-c', shell], { env: env() });
  expect(await exited).toMatchObject({ code: 1 });
  expect(output.stderr.trim()).toMatch(/^gpd: stdout cannot be written \(ENOSPC\)[^\n]*$/);
});

it('a PostgreSQL that refuses is named with its cause, in one line without the password or a warning', async () => {
  const url = 'postgres://gpd:s3cret@127.0.0.1:1/gpd?sslmode=require';
  for (const [args, settings] of [
    [['serve', '--port', '0'], { GPD_DATABASE_URL: url }],
    [['status'], { GPD_DATABASE_URL: url }],
    [['move', '--to', url], {}],
  ] as const) {
    const { output, exited } = spawnTool(process.execPath, [PROGRAM, ...args], {
      env: { ...env(), ...settings },
    });
    expect(await exited).toMatchObject({ code: 75 });
    expect(output.stderr).toMatch(
      /^gpd: the database postgres:\/\/127\.0\.0\.1:1\/gpd cannot be used now: it refuses the connection \(ECONNREFUSED\)[^\n]*\n$/,
    );
  }
});

describe.concurrent('stdout is data, stderr is messages', () => {
  const commands: readonly (readonly string[])[] = [
    ['tenants', 'list'],
    ['tenants', 'set', KID, 'retention.days=60'],
    ['keys', 'list'],
    ['keys', 'rotate', KID, '--dry-run'],
    ['keys', 'rewrap', '--dry-run'],
    ['apikeys', 'list'],
    ['consent', 'purposes', 'list', KID],
    ['migrate'],
    ['replay', '-'],
  ];

  it.each(commands.map((args) => [args]))(
    '%j --json prints one JSON value and nothing else',
    async (args) => {
      const ran = await gpd([...args, '--json']);
      expect(ran).toMatchObject({ code: 0, stderr: '' });
      expect(ran.stdout.endsWith('\n')).toBe(true);
      expect(ran.stdout.trimEnd()).not.toContain('\n');
      expect(() => JSON.parse(ran.stdout) as unknown).not.toThrow();
    },
  );

  it('--json may stand before the command', async () => {
    const [before, after] = [
      await gpd(['--json', 'tenants', 'list']),
      await gpd(['tenants', 'list', '--json']),
    ];
    expect(before.stdout).toBe(after.stdout);
  });

  it.each([
    [3, ['tenants', 'set', 'nobody', 'retention.days=60']],
    [7, ['tenants', 'add', KID]],
    [2, ['keys', 'destroy', KID, '1', '--grace', '1d']],
    [2, ['nonsense']],
    [2, ['tenants', 'nonsense']],
    [2, ['tenants', 'list', '--nonsense']],
    [2, ['tenants', 'add']],
    [2, ['tenants', 'list', 'surplus']],
  ])('%i for %j --json, with a message on stderr and an empty stdout', async (code, args) => {
    const ran = await gpd([...args, '--json']);
    expect(ran.code).toBe(code);
    expect(ran.stdout).toBe('');
    expect(ran.stderr).not.toBe('');
    expect(ran.stderr).not.toMatch(/\n\s+at /);
  });

  it.each([
    [[], 2],
    [['--help'], 0],
    [['keys', 'rotate', '--help'], 0],
    [['--version'], 0],
  ])('%j exits %i', async (args, code) => {
    expect((await gpd(args)).code).toBe(code);
  });

  it('prints no colours into a pipe, with NO_COLOR or without', async () => {
    for (const variables of [{}, { NO_COLOR: '1' }]) {
      for (const args of [['tenants', 'list'], ['nonsense']]) {
        const ran = await gpd(args, variables as Record<string, string>);
        expect(ran.stdout + ran.stderr).not.toMatch(ESCAPE);
      }
    }
  });
});

/** Runs gpd in a shell script that keeps standard input open, or closes standard output. */
function run(script: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn('bash', ['-c', script], {
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env() },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
}

const NODE = `'${process.execPath}' '${PROGRAM}'`;

describe.concurrent('in a pipe', () => {
  it('a reader that goes away is no failure', async () => {
    const ran = await run(`${NODE} tenants list --json | true; echo "\${PIPESTATUS[0]}"`);
    expect(ran).toEqual({ code: 0, stdout: '0\n', stderr: '' });
  });

  it('head gets its line', async () => {
    const ran = await run(`${NODE} keys list | head -1; echo "\${PIPESTATUS[0]}"`);
    expect(ran.stdout).toMatch(/^KID .*\n0\n$/);
    expect(ran.stderr).toBe('');
  });

  it('nothing prompts without a terminal, even when input stays open', async () => {
    const { dataDir: ownDirectory } = await initGpd();
    const options = { env: { GPD_DATA_DIR: ownDirectory }, input: null };
    await gpdJson(['keys', 'rotate', KID], options);
    const ran = await runGpd(['keys', 'destroy', KID, '1'], options);
    expect(ran).toMatchObject({ code: 2, stdout: '' });
    expect(ran.stderr).toMatch(/--yes/);
  });
});
