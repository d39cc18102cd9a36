import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
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
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  try {
    return await prepare(project);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    throw error;
  }
}

/** Bytes that must be free; a whole run takes half of them. */
const MEMORY_NEEDED = 2 * 2 ** 30;
const MEMORY = '/dev/shm';

/** A container often has only 64 MB there, and may execute none of it. */
async function hasMemory(): Promise<boolean> {
  const { bavail, bsize } = await statfs(MEMORY).catch(() => ({ bavail: 0, bsize: 0 }));
  const mounts = await readFile('/proc/mounts', 'utf8').catch(() => '');
  const executes = !new RegExp(`^\\S+ ${MEMORY} .*\\bnoexec\\b`, 'm').test(mounts);
  return bavail * bsize >= MEMORY_NEEDED && executes;
}

/**
 * Most tests would wait longest for a disk that none of them looks at. What measures, kills or fills one keeps it: the heavy
 * suites and those with a command of their own.
 */
async function folderFor({ vitest }: TestProject): Promise<string> {
  const needsDisk = vitest.projects.some(({ name }) => ['heavy', 'apart'].includes(name));
  return mkdtemp(join(needsDisk || !(await hasMemory()) ? tmpdir() : MEMORY, 'gpd-test-'));
}

async function prepare(project: TestProject): Promise<() => Promise<void>> {
  if (process.env['SKIP_BUILD'] !== '1') await build();
  const runDir = await folderFor(project);
  process.env['TEST_RUN_DIR'] = runDir;
  if ((await missingPostgres()) === null) await copyPostgresIfHidden(runDir);
  const postgres = await offerPostgres();
  process.env['TEST_POSTGRES'] = postgres.url;
  return async () => {
    await postgres.end();
    await endLeftovers(runDir);
    await rm(runDir, { recursive: true, force: true });
  };
}
