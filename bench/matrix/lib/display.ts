import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { findProgram, type ProgramName, program } from './programs.ts';

/** A screen of 1920 by 1080 that nobody sees, with a window manager where there is one: windows get frames and sizes. */

export interface Display {
  readonly name: string;
  stop(): Promise<void>;
}

export const startDisplay = (): Promise<Display> =>
  startServer('xvfb', ['-screen', '0', '1920x1080x24', '-nolisten', 'tcp']);

/** A screen that is somewhere else: it is looked at and moved by RFC 6143 on this port alone. */
export const startRemoteDisplay = (port: number): Promise<Display> =>
  startServer('xvnc', [
    '-SecurityTypes',
    'None',
    '-rfbport',
    String(port),
    '-localhost=1',
    '-geometry',
    '1366x768',
    '-depth',
    '24',
    '-nolisten',
    'tcp',
  ]);

/** A screen in a window of another. */
export const startNestedDisplay = (environment: NodeJS.ProcessEnv): Promise<Display> =>
  startServer('xephyr', ['-screen', '1366x768', '-nolisten', 'tcp'], environment);

/** A screen for xrdp, which finds it by a socket in this directory. */
export const startRdpDisplay = (directory: string): Promise<Display> =>
  startServer(
    'xorg',
    ['-config', 'xrdp/xorg.conf', '-noreset', '-nolisten', 'tcp', '-logfile', join(directory, 'xorg.log')],
    { ...process.env, XRDP_SOCKET_PATH: directory, XRDP_START_WIDTH: '1366', XRDP_START_HEIGHT: '768' },
  );

async function startServer(
  name: ProgramName,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = process.env,
): Promise<Display> {
  const server = spawn(program(name), ['-displayfd', '3', ...args], {
    env: environment,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  const pipe = server.stdio[3];
  if (!pipe) throw new Error(`${name} has no third descriptor`);
  const ended = once(server, 'exit').then(() => {
    throw new Error(`${name} ended`);
  });
  const [number] = (await Promise.race([once(pipe, 'data'), ended])) as [Buffer];
  ended.catch(() => {});
  const display = `:${number.toString('utf8').trim()}`;
  const path = findProgram('openbox');
  const manager =
    path === null ? null : spawn(path, [], { env: { ...process.env, DISPLAY: display }, stdio: 'ignore' });
  return {
    name: display,
    async stop() {
      manager?.kill('SIGTERM');
      if (server.exitCode !== null || server.signalCode !== null) return;
      const gone = new Promise((resolve) => server.once('exit', resolve));
      server.kill('SIGTERM');
      await gone;
    },
  };
}
