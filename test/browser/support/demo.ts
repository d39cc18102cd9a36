import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { tempDir } from '../../support/command.ts';

const START_MS = 120_000;
const PROGRAM = fileURLToPath(new URL('../../../bin/gpd', import.meta.url));

export interface Demo {
  /** Address of the shop page. */
  readonly shop: string;
  readonly stop: () => Promise<void>;
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let complaint = '';
    child.stderr?.on('data', (chunk: Buffer) => {
      complaint += chunk.toString('utf8');
    });
    const fail = (reason: string): void => reject(new Error(`gpd demo ${reason}\n${complaint}`));
    const timer = setTimeout(() => fail('printed nothing'), START_MS);
    child.once('error', (error) => fail(`failed: ${error.message}`));
    child.once('close', (code) => fail(`ended with ${code}`));
    if (child.stdout) createInterface(child.stdout).once('line', resolve);
    child.stdout?.once('data', () => clearTimeout(timer));
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = new Promise((resolve) => child.once('close', resolve));
  child.kill('SIGTERM');
  await closed;
}

/** `gpd demo` on a free port: everything real, in a throw-away data directory of its own. */
export async function startDemo(): Promise<Demo> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('GPD_')));
  const child = spawn(process.execPath, [PROGRAM, 'demo', '--port', '0', '--json'], {
    cwd: tempDir('demo'),
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  process.once('exit', () => child.kill('SIGKILL'));
  try {
    const { urls } = JSON.parse(await firstLine(child)) as { urls: { shop: string } };
    return { shop: urls.shop, stop: () => stop(child) };
  } catch (error) {
    await stop(child);
    throw error;
  }
}
