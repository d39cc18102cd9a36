import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** The line that serve.mjs prints. */
export interface Servers {
  readonly url: string;
  readonly vkey: string;
  readonly runs: string;
  readonly keys: Readonly<Record<string, string>>;
}

const SERVE = fileURLToPath(new URL('../../../conformance/serve.mjs', import.meta.url));

/** Starts the servers, unless GPD_CONFORMANCE names running ones. */
export async function startServers(): Promise<{ servers: Servers; stop(): Promise<void> }> {
  const running = process.env['GPD_CONFORMANCE'];
  if (running) return { servers: JSON.parse(running) as Servers, stop: async () => {} };
  const child = spawn(process.execPath, [SERVE], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const lines = createInterface({ input: child.stdout });
  const first = (await Promise.race([once(lines, 'line'), exited.then(() => null)])) as [string] | null;
  if (!first) throw new Error('serve.mjs ended before it told its addresses');
  return {
    servers: JSON.parse(first[0]) as Servers,
    async stop() {
      child.stdin.end();
      await exited;
    },
  };
}
