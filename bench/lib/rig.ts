import type { ChildProcess } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig } from '../../src/config.ts';
import { wrapContext } from '../../src/keys/generation.ts';
import { openStore } from '../../src/tenants/installation-files.ts';
import { makeSealKeyStore } from '../../src/tenants/seal-keys.ts';
import { writeBundles } from './bundles.ts';
import { cleanEnvironment, firstLine, runNode, startNode, stop } from './child.ts';
import { drive, type LoadResult } from './requests.ts';

/** One initialised gpd as a template, its sealed bundles and its private key: what every bench starts from. */

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
  /** Holds the 32-byte scalar of the tenant's seal key, for the floors. */
  readonly keyFile: string;
  /** `writeBundles` was called: requests and replay lines of the same bundles. */
  readonly wire: string;
  readonly ndjson: string;
  /**
   * A path that nothing has yet, for a database that is left there until {@link Rig.remove}: ext4 tells the disk what it
   * may discard after files went, and a COMMIT beside that waits for a tenth of a second.
   */
  freshPath(name: string): string;
  /** A data directory with a tenant and no visits yet. */
  freshData(name: string): string;
  environment(data: string): NodeJS.ProcessEnv;
  gpdArgs(...args: readonly string[]): string[];
  startGpd(
    data: string,
    settings?: Readonly<Record<string, string>>,
    through?: readonly string[],
  ): Promise<Running>;
  /** A program of this folder that tells its port. */
  startOther(program: string, ...args: readonly (string | number)[]): Promise<Running>;
  seal(count: number, seed: number): Promise<void>;
  /** Sends bundles. @throws unless all were answered 200 */
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

/** The published key of the template, unwrapped: the floors open the very bytes that gpd opens. */
async function exportSealKey(data: string): Promise<{ privateKey: Buffer; publicKey: Buffer }> {
  const store = await openStore(loadConfig({ environment: { GPD_DATA_DIR: data }, flags: {} }));
  try {
    const keys = await makeSealKeyStore(store.database).list(KID);
    const key = keys.find((generation) => generation.state === 'published');
    if (!key || key.wrappedPrivate === null) throw new Error('the template has no published seal key');
    const privateKey = store.masterKey.unwrap(key.wrappedPrivate, wrapContext(KID, key.generation));
    return { privateKey, publicKey: Buffer.from(key.publicKey, 'base64') };
  } finally {
    await store.database.close();
  }
}

/** @throws when gpd is not built */
export async function makeRig(): Promise<Rig> {
  if (!existsSync(join(ROOT, 'dist', 'cli', 'main.js')))
    throw new Error('gpd is not built: run `npm run build` first');
  const directory = mkdtempSync(join(tmpdir(), 'gpd-bench-'));
  const template = join(directory, 'template');
  const environment = (data: string): NodeJS.ProcessEnv =>
    cleanEnvironment({
      GPD_DATA_DIR: data,
      GPD_RATE_INGEST: 'off',
      GPD_LOG_LEVEL: 'warn',
      // The bundles are sealed once, before everything, and stay fresh for the whole run.
      GPD_MAX_CLOCK_SKEW: '86400',
    });
  const init = [GPD, 'init', '--tenant', KID, '--origin', ORIGIN, '--json'];
  await runNode(init, { cwd: directory, env: environment(template) });
  const { privateKey, publicKey } = await exportSealKey(template);
  const keyFile = join(directory, 'seal-key');
  writeFileSync(keyFile, privateKey, { mode: 0o600 });
  const [wire, ndjson] = [join(directory, 'requests'), join(directory, 'bundles.ndjson')];
  let paths = 0;
  const freshPath = (name: string): string => {
    paths += 1;
    return join(directory, `${name}-${paths}`);
  };
  return {
    kid: KID,
    directory,
    keyFile,
    wire,
    ndjson,
    environment,
    gpdArgs: (...args) => [GPD, ...args],
    freshPath,
    freshData(name) {
      const data = freshPath(name);
      cpSync(template, data, { recursive: true });
      return data;
    },
    startGpd: (data, settings = {}, through = []) => {
      const options = { cwd: directory, env: { ...environment(data), ...settings }, through };
      return running(startNode([GPD, 'serve', '--port', '0', '--json'], options));
    },
    startOther: (program, ...args) =>
      running(startNode([join(BENCH, program), ...args.map(String)], { cwd: directory })),
    seal: (count, seed) => writeBundles({ kid: KID, publicKey, origin: ORIGIN, count, seed, wire, ndjson }),
    load: (port, skip, count) => drive(port, { file: wire, skip, count, status: 200 }),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

export const FLOOR_REPLAY = join(BENCH, 'floor', 'replay.mjs');
