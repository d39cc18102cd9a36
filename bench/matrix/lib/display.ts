import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { findProgram, program } from './programs.ts';

/** A virtual screen of 1920 by 1080 (Xvfb), with a window manager if one is installed, so that windows have frames and sizes. */

export interface Display {
  readonly name: string;
  stop(): Promise<void>;
}

export async function startDisplay(): Promise<Display> {
  const args = ['-displayfd', '3', '-screen', '0', '1920x1080x24', '-nolisten', 'tcp'];
  const server = spawn(program('xvfb'), args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] });
  const pipe = server.stdio[3];
  if (!pipe) throw new Error('Xvfb has no third descriptor');
  const exited = once(server, 'exit').then(() => {
    throw new Error('Xvfb ended');
  });
  const [number] = (await Promise.race([once(pipe, 'data'), exited])) as [Buffer];
  exited.catch(() => {});
  const display = `:${number.toString('utf8').trim()}`;
  const path = findProgram('openbox');
  const manager =
    path === null ? null : spawn(path, [], { env: { ...process.env, DISPLAY: display }, stdio: 'ignore' });
  return {
    name: display,
    async stop() {
      manager?.kill('SIGTERM');
      if (server.exitCode !== null || server.signalCode !== null) return;
      const serverExit = new Promise((resolve) => server.once('exit', resolve));
      server.kill('SIGTERM');
      await serverExit;
    },
  };
}
