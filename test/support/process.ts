import { type Exit, type Spawned, spawnGpd, tempDir } from './command.ts';
import { type Gpd, type GpdOptions, installationOf } from './server.ts';

/** Starts the built program as a separate process, like a service manager. */

export interface ProcessOptions extends GpdOptions {
  readonly cwd?: string;
  /** The path of another copy of bin/gpd. */
  readonly program?: string;
}

/** A running process of the built program. */
export interface GpdProcess extends Gpd {
  readonly pid: number;
  /** Sends SIGTERM and does not wait. */
  terminate(): void;
  readonly exited: Promise<Exit>;
  kill9(): Promise<void>;
}

function listening({ child, output, exited }: Spawned): Promise<{ url: string; port: number }> {
  return new Promise((resolve, reject) => {
    child.stdout?.on('data', () => {
      const line = output.stdout.split('\n', 1)[0] ?? '';
      if (output.stdout.includes('\n')) resolve(JSON.parse(line) as { url: string; port: number });
    });
    void exited.then(({ code }) => reject(new Error(`gpd serve ended with ${code}: ${output.stderr}`)));
  });
}

/** Starts `gpd serve` of a new installation on a free port; its commands run in the tests' process. */
export async function startProcess(options: ProcessOptions = {}): Promise<GpdProcess> {
  const { dataDir, targets, env, cli, json } = await installationOf(options);
  const { args = ['--port', '0'], cwd = tempDir('cwd') } = options;
  const program = options.program === undefined ? {} : { program: options.program };
  const spawned = spawnGpd(['serve', '--json', ...args], { env, cwd, ...program });
  const { child, output, exited } = spawned;
  const { url, port } = await listening(spawned);
  return {
    url,
    port,
    pid: child.pid ?? 0,
    dataDir,
    targets,
    cli,
    json,
    terminate: () => void child.kill('SIGTERM'),
    exited,
    stop() {
      child.kill('SIGTERM');
      return exited;
    },
    async kill9() {
      child.kill('SIGKILL');
      await exited;
    },
    logs: () => output.stderr,
  };
}
