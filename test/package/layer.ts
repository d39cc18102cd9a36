import { execFileSync, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { tempDir } from '../support/command.ts';

/**
 * Runs scripts on this machine in an overlay over all its files,
 * which is deleted afterwards: real dpkg and users, no traces.
 */

const LAYER = fileURLToPath(new URL('layer.sh', import.meta.url));
const PROJECT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

export function missingLayer(tools: readonly string[] = []): string | null {
  try {
    for (const tool of tools) execFileSync('sh', ['-c', `command -v ${tool}`], { stdio: 'ignore' });
    execFileSync('unshare', ['--mount', '--pid', '--fork', 'bash', LAYER, 'true'], {
      env: { ...process.env, PROJECT },
      stdio: 'ignore',
    });
    return null;
  } catch {
    return `it takes root, namespaces, overlayfs${tools.map((tool) => `, ${tool}`).join('')}`;
  }
}

export interface Followed {
  readonly code: number | null;
  readonly output: string;
}

/** Runs a script in the overlay until a command fails. All its processes end with it. */
export function inLayer(script: string, env: Readonly<Record<string, string>> = {}): Promise<Followed> {
  const command = ['--mount', '--pid', '--fork', '--kill-child', 'bash', LAYER, 'bash', '-c', script];
  const child = spawn('unshare', command, {
    cwd: tempDir('layer'),
    env: {
      PATH: process.env['PATH'],
      HOME: '/root',
      LANG: 'C.UTF-8',
      DEBIAN_FRONTEND: 'noninteractive',
      PROJECT,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, output })));
}
