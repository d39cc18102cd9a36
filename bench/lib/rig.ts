import type { ChildProcess } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeBundles } from './bundles.ts';
import { cleanEnvironment, firstLine, runNode, startNode, stop } from './child.ts';
import { drive, type LoadResult } from './requests.ts';

/** The start of every bench: one initialised data directory as a template, and bundles sealed to its tenant. */

const KID = 'bench';
export const ORIGIN = 'https://shop.example';
const BENCH = fileURLToPath(new URL('..', import.meta.url));
const ROOT = join(BENCH, '..');
const GPD = join(ROOT, 'bin', 'gpd');

export interface Running {
  readonly pid: number;
  readonly port: number;
  stop(): Promise<void>;
}

export interface Rig {
  readonly kid: string;
  readonly directory: string;
  /** The file that {@link Rig.seal} writes. */
  readonly bundles: string;
  /**
   * Returns a new path for a database, which stays until {@link Rig.remove}: after a deletion, ext4 discards blocks of the
   * disk, and a COMMIT meanwhile takes a tenth of a second longer.
   */
  freshPath(name: string): string;
  /** Creates a data directory with a tenant and no visits. */
  freshData(name: string): string;
  /** Creates a secret API key of the tenant in this data directory. */
  createApiKey(data: string): Promise<string>;
  environment(data: string): NodeJS.ProcessEnv;
  gpdArgs(...args: readonly string[]): string[];
  startGpd(data: string): Promise<Running>;
  /** Starts a program of `bench/floor`. */
  startFloor(program: string, ...args: readonly (string | number)[]): Promise<Running>;
  seal(count: number, seed: number): Promise<void>;
  /** Sends bundles. @throws {Error} unless every answer is 200 */
  load(port: number, skip: number, count: number): Promise<LoadResult>;
  remove(): void;
}

export async function running(child: ChildProcess): Promise<Running> {
  try {
    const { port } = JSON.parse(await firstLine(child)) as { port: number };
    return { pid: child.pid ?? 0, port, stop: () => stop(child) };
  } catch (error) {
    await stop(child);
    throw error;
  }
}

const environment = (data: string): NodeJS.ProcessEnv =>
  cleanEnvironment({
    GPD_DATA_DIR: data,
    GPD_RATE_INGEST: 'off',
    GPD_RATE_CONSENT: 'off',
    // All of the load comes from one address.
    GPD_TRUSTED_PROXIES: '127.0.0.1',
    GPD_LOG_LEVEL: 'warn',
    // The bundles are sealed once at the start and must not become stale during the run.
    GPD_MAX_CLOCK_SKEW: '86400',
  });

/** @throws {Error} when gpd is not built */
export async function createRig(): Promise<Rig> {
  if (!existsSync(join(ROOT, 'dist', 'cli', 'main.js')))
    throw new Error('gpd is not built: run `npm run build` first');
  const directory = mkdtempSync(join(tmpdir(), 'gpd-bench-'));
  const template = join(directory, 'template');
  const gpd = async (data: string, ...args: readonly string[]): Promise<Record<string, string>> => {
    const options = { cwd: directory, env: environment(data) };
    return JSON.parse((await runNode([GPD, ...args, '--json'], options)).stdout) as Record<string, string>;
  };
  const output = await gpd(template, 'init', '--tenant', KID, '--origin', ORIGIN);
  const publicKey = Buffer.from(output['publicKey'] ?? '', 'base64');
  const bundles = join(directory, 'bundles');
  let paths = 0;
  const freshPath = (name: string): string => {
    paths += 1;
    return join(directory, `${name}-${paths}`);
  };
  return {
    kid: KID,
    directory,
    bundles,
    environment,
    gpdArgs: (...args) => [GPD, ...args],
    freshPath,
    freshData(name) {
      const data = freshPath(name);
      cpSync(template, data, { recursive: true });
      return data;
    },
    async createApiKey(data) {
      const { key } = await gpd(data, 'apikeys', 'create', KID, '--scope', 'secret', '--name', 'bench');
      if (key === undefined) throw new Error('gpd made no API key');
      return key;
    },
    startGpd: (data) => {
      const options = { cwd: directory, env: environment(data) };
      return running(startNode([GPD, 'serve', '--port', '0', '--json'], options));
    },
    startFloor: (program, ...args) =>
      running(startNode([join(BENCH, 'floor', program), ...args.map(String)], { cwd: directory })),
    seal: (count, seed) => writeBundles({ kid: KID, publicKey, origin: ORIGIN, count, seed, file: bundles }),
    load: (port, skip, count) => drive(port, { file: bundles, skip, count, status: 200 }),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
