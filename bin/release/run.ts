import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** Runs the programs that create and try a release, with the same environment on every machine. */

export interface Place {
  /** Folder of the unpacked and built source archive. */
  readonly source: string;
  /** Folder of the artefacts. */
  readonly out: string;
  readonly scratch: string;
  readonly version: string;
  readonly commit: string;
  /** Time of the commit in seconds, which every file in every artefact gets. */
  readonly epoch: number;
}

export type Variables = Readonly<Record<string, string>>;

/** @returns its standard output @throws {Error} with its whole output */
export function run(cwd: string, env: Variables, file: string, ...args: readonly string[]): string {
  const options = { cwd, env: { ...process.env, ...env }, encoding: 'utf8', maxBuffer: 1 << 28 } as const;
  try {
    return execFileSync(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] }).trim();
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${file} ${args.join(' ')} failed:\n${stdout ?? ''}\n${stderr ?? String(error)}`);
  }
}

/** Variables that keep language, time zone and time of the build out of the artefacts. */
export function fixedEnvironment(epoch: number): Variables {
  return { SOURCE_DATE_EPOCH: String(epoch), TZ: 'UTC', LC_ALL: 'C', PYTHONHASHSEED: '0' };
}

export const sha256 = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

export function say(text: string): void {
  process.stderr.write(`release: ${text}\n`);
}
