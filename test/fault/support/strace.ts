import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

/** A disk that fails: strace answers a running process's system calls in the kernel's place. */

const tried = spawnSync('strace', ['-f', '-e', 'trace=none', 'true'], { encoding: 'utf8' });

export function missingStrace(): string | null {
  return tried.error ? 'strace is not installed (apt-get install strace)' : null;
}

/** Null when a process may be traced here; else why not. */
export function refusedStrace(): string | null {
  return tried.error || tried.status === 0 ? null : `strace may not trace here: ${tried.stderr.trim()}`;
}

export interface Injection {
  /** `fsync,fdatasync` */
  readonly calls: string;
  readonly error: 'EIO' | 'ENOSPC';
  /** `3`: the third call alone; `1+`: every call. */
  readonly when: string;
}

/** From now on these calls fail; the function that is returned mends the disk. */
export async function breakDisk(
  pid: number,
  { calls, error, when }: Injection,
): Promise<() => Promise<void>> {
  const inject = `inject=${calls}:error=${error}:when=${when}`;
  const args = ['-f', '-q', '-e', `trace=${calls}`, '-e', 'signal=none', '-e', inject, '-o', '/dev/null'];
  const tracer = spawn('strace', [...args, '-p', String(pid)], { stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  tracer.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const exited = once(tracer, 'exit');
  // It says nothing when it is ready; the kernel does.
  for (let i = 0; !(await isTraced(pid)); i += 1) {
    if (i > 500 || tracer.exitCode !== null) throw new Error(`strace did not attach: ${output}`);
    await sleep(10);
  }
  return async () => {
    if (tracer.exitCode === null && tracer.signalCode === null) tracer.kill('SIGINT');
    await exited;
  };
}

async function isTraced(pid: number): Promise<boolean> {
  const { readFile, readdir } = await import('node:fs/promises');
  const tasks = await readdir(`/proc/${pid}/task`).catch(() => []);
  for (const task of tasks) {
    const status = await readFile(`/proc/${pid}/task/${task}/status`, 'utf8').catch(() => '');
    if (/^TracerPid:\t0$/m.test(status)) return false;
  }
  return tasks.length > 0;
}
