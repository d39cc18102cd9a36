import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { copyPostgresIfHidden, missingPostgres, offerPostgres } from './postgres.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));

async function build(): Promise<void> {
  const steps = ['node_modules/typescript/bin/tsc -p .', 'bin/build-agent.mjs', 'bin/build-banner.mjs'];
  for (const step of steps) {
    const [script = '', ...args] = step.split(' ');
    if (!existsSync(join(root, script))) continue;
    await run(process.execPath, [script, ...args], { cwd: root }).catch((error: unknown) => {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
      throw new Error(`the build failed (${step}):\n${stdout}${stderr}`);
    });
  }
}

/** Stops the processes of a killed worker: command.ts wrote a file named after each pid. */
async function endLeftovers(runDir: string): Promise<void> {
  for (const name of await readdir(runDir)) {
    const pid = Number(/^(\d+)\.pid$/.exec(name)?.[1]);
    if (!(pid > 1)) continue;
    try {
      process.kill(pid, 'SIGKILL');
      process.stderr.write(`ended process ${pid}, which a test had left running\n`);
    } catch {
      // The process exited meanwhile.
    }
  }
}

/**
 * Runs once before all suites: builds `dist/` (unless SKIP_BUILD=1). It prints its own errors, because vitest 4.1 crashes when it looks up the source of an error from this module.
 */
export async function setup(): Promise<() => Promise<void>> {
  try {
    return await prepare();
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    throw error;
  }
}

/** Bytes that must be free; the databases of a contract take far fewer. */
const MEMORY_NEEDED = 2 ** 30;

/** Makes a folder in memory, or returns null where there is too little room: a container often has 64 MB. */
async function memoryFolder(): Promise<string | null> {
  const { bavail, bsize } = await statfs('/dev/shm').catch(() => ({ bavail: 0, bsize: 0 }));
  return bavail * bsize < MEMORY_NEEDED ? null : mkdtemp('/dev/shm/gpd-test-');
}

async function prepare(): Promise<() => Promise<void>> {
  if (process.env['SKIP_BUILD'] !== '1') await build();
  const runDir = await mkdtemp(join(tmpdir(), 'gpd-test-'));
  process.env['TEST_RUN_DIR'] = runDir;
  const memoryDir = (await memoryFolder()) ?? runDir;
  process.env['TEST_MEMORY_DIR'] = memoryDir;
  if ((await missingPostgres()) === null) await copyPostgresIfHidden(runDir);
  const postgres = await offerPostgres();
  process.env['TEST_POSTGRES'] = postgres.url;
  return async () => {
    await postgres.end();
    await endLeftovers(runDir);
    for (const folder of [runDir, memoryDir]) await rm(folder, { recursive: true, force: true });
  };
}
