import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

/** Peers are no dependency of gpd: they are fetched into a folder of the run, and only when they are asked for. */

export const PEER_PACKAGES: Readonly<Record<'c15t' | 'cerbos', Readonly<Record<string, string>>>> = {
  c15t: { '@c15t/backend': '2.2.1', kysely: '0.28.18', 'better-sqlite3': '12.11.1' },
  cerbos: { cerbos: '0.51.0' },
};
export type Peer = keyof typeof PEER_PACKAGES;

/** The driver may have to be compiled. */
const GIVE_UP_MS = 480_000;

/**
 * Into `directory`, or into the folder that BENCH_PEERS names, which is kept and used again.
 * @returns the folder whose node_modules hold the peer
 * @throws with npm's words
 */
export async function installPeer(peer: Peer, directory: string): Promise<string> {
  const folder = join(process.env['BENCH_PEERS'] ?? directory, `peer-${peer}`);
  if (existsSync(join(folder, 'node_modules'))) return folder;
  mkdirSync(folder, { recursive: true });
  const manifest = { private: true, type: 'module', dependencies: PEER_PACKAGES[peer] };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  const npm = join(dirname(process.execPath), 'npm');
  await promisify(execFile)(npm, ['install', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    timeout: GIVE_UP_MS,
  });
  return folder;
}
