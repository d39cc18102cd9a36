import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { newFolder } from './artefacts.ts';
import type { Place, Variables } from './run.ts';

/** Starts a server from an artefact, for the smoke tests. */

/** Time to start in. Without one for the use of the server: SDKs download what they depend on. */
const LIMIT_MS = 120_000;

/**
 * Starts a server on an empty data directory and ends it when `use` is done.
 * @param command `gpd serve` or `gpd demo` in one of its forms
 * @param use gets the line of JSON that the server printed, and the variables with which commands find the same installation
 * @throws {Error} when it does not start, or does not end with 0
 */
export async function withServer<Started>(
  place: Place,
  command: readonly string[],
  variables: Variables,
  use: (startLine: Started, env: Variables) => Promise<void>,
): Promise<void> {
  const [file = '', ...args] = command;
  const cwd = newFolder(place, 'server');
  const first = { GPD_INIT_TENANT: 'shop', GPD_INIT_ORIGIN: 'https://shop.example', GPD_PORT: '0' };
  const env = { ...variables, HOME: cwd, GPD_DATA_DIR: `${cwd}/data`, GPD_LOG_LEVEL: 'fatal' };
  const child = spawn(file, [...args, '--json'], {
    cwd,
    env: { ...env, ...first },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const exited = once(child, 'exit') as Promise<[number | null]>;
  const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
  try {
    const line = once(createInterface(child.stdout), 'line') as Promise<[string]>;
    const [startLine] = await Promise.race([line, exited.then(() => [null])]);
    if (startLine === null || startLine === undefined) throw new Error(`${command.join(' ')} did not start`);
    clearTimeout(timer);
    await use(JSON.parse(startLine) as Started, env);
    child.kill('SIGTERM');
    const [code] = await exited;
    if (code !== 0) throw new Error(`${command.join(' ')} ended with ${String(code)}`);
  } finally {
    clearTimeout(timer);
    child.kill('SIGKILL');
  }
}
