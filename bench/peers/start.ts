import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type AddressInfo, connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { cleanEnvironment, startNode, stop } from '../lib/child.ts';
import { PURPOSE } from '../lib/principals.ts';
import { type Running, running } from '../lib/rig.ts';

const C15T = fileURLToPath(new URL('c15t.mjs', import.meta.url));

/** `@c15t/backend` on an SQLite file of its own. */
export function startC15t(folder: string, file: string): Promise<Running> {
  return running(startNode([C15T, folder, file], { cwd: folder }));
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' }, () => resolve(true));
    socket.on('error', () => resolve(false)).on('connect', () => socket.destroy());
  });
}

/** What gpd decides by, as a policy: granted, and not expired. The caller sends what the person said. */
const POLICY = {
  apiVersion: 'api.cerbos.dev/v1',
  resourcePolicy: {
    resource: 'processing',
    version: 'default',
    rules: [
      {
        actions: [PURPOSE],
        effect: 'EFFECT_ALLOW',
        roles: ['person'],
        condition: {
          match: { expr: 'P.attr.choice == "granted" && timestamp(P.attr.expiresAt) > now()' },
        },
      },
    ],
  },
};

function writeSettings(folder: string, port: number, grpcPort: number): string {
  const policies = join(folder, 'policies');
  mkdirSync(policies, { recursive: true });
  writeFileSync(join(policies, 'processing.json'), JSON.stringify(POLICY));
  const settings = {
    server: { httpListenAddr: `127.0.0.1:${port}`, grpcListenAddr: `127.0.0.1:${grpcPort}` },
    storage: { driver: 'disk', disk: { directory: policies, watchForChanges: false } },
    telemetry: { disabled: true },
    audit: { enabled: false },
  };
  const file = join(folder, 'cerbos.json');
  writeFileSync(file, JSON.stringify(settings));
  return file;
}

const START_MS = 30_000;

export async function startCerbos(folder: string): Promise<Running> {
  const [port, grpcPort] = [await freePort(), await freePort()];
  const name = `cerbos-${process.platform}-${process.arch}`;
  // The package's own command starts the binary as a child: its CPU would be counted under another process.
  const binary = createRequire(join(folder, 'package.json')).resolve(`@cerbos/${name}/package.json`);
  const args = ['server', `--config=${writeSettings(folder, port, grpcPort)}`, '--log-level=ERROR'];
  const command = join(binary, '..', name);
  const child = spawn(command, args, { cwd: folder, env: cleanEnvironment(), stdio: 'ignore' });
  const deadline = performance.now() + START_MS;
  while (!(await accepts(port))) {
    if (child.exitCode !== null || performance.now() > deadline) {
      await stop(child);
      throw new Error('cerbos did not start');
    }
    await sleep(50);
  }
  return { pid: child.pid ?? 0, port, stop: () => stop(child) };
}
