import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Finds the programs that the runs need, and says how to get missing ones. */

interface Program {
  readonly names: readonly string[];
  /** Paths to try after the PATH. */
  readonly places?: readonly string[];
  readonly remedy: string;
}

const PROGRAMS = {
  xvfb: { names: ['Xvfb'], remedy: 'apt-get install xvfb' },
  openbox: { names: ['openbox'], remedy: 'apt-get install openbox' },
  xdotool: { names: ['xdotool'], remedy: 'apt-get install xdotool' },
  chromium: { names: ['chromium', 'chromium-browser'], remedy: 'apt-get install chromium' },
  'headless-shell': { names: ['chromium-headless-shell'], remedy: 'apt-get install chromium-headless-shell' },
  chromedriver: { names: ['chromedriver'], remedy: 'apt-get install chromium-driver' },
  firefox: { names: ['firefox-esr', 'firefox'], remedy: 'apt-get install firefox-esr' },
  minibrowser: {
    names: ['MiniBrowser'],
    places: ['4.1', '4.0'].map((api) => `/usr/lib/x86_64-linux-gnu/webkit2gtk-${api}`),
    remedy: 'apt-get install webkit2gtk-driver',
  },
  webkitdriver: { names: ['WebKitWebDriver'], remedy: 'apt-get install webkit2gtk-driver' },
} as const satisfies Readonly<Record<string, Program>>;

export type ProgramName = keyof typeof PROGRAMS;

function executable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** @returns the path of the program, or null */
export function findProgram(name: ProgramName): string | null {
  const { names, places = [] }: Program = PROGRAMS[name];
  const directories = [...(process.env['PATH'] ?? '').split(delimiter), ...places];
  const candidates = names.flatMap((file) => directories.map((directory) => join(directory, file)));
  return candidates.find(executable) ?? null;
}

export function program(name: ProgramName): string {
  const path = findProgram(name);
  if (path === null) throw new Error(`${name} is not installed: ${PROGRAMS[name].remedy}`);
  return path;
}

/** @returns which programs a run lacks and how to get them, or null */
export function missingPrograms(names: readonly ProgramName[]): string | null {
  const missing = names.filter((name) => findProgram(name) === null);
  if (missing.length === 0) return null;
  return missing
    .map((name) => `${PROGRAMS[name].names[0]} is not installed (${PROGRAMS[name].remedy})`)
    .join('; ');
}

const versions = new Map<string, string | null>();

/** Reads the version from `--version`; null when it prints none. */
export function programVersion(name: ProgramName, environment = process.env): string | null {
  const storedVersion = versions.get(name);
  if (storedVersion !== undefined) return storedVersion;
  let output = '';
  try {
    output = execFileSync(program(name), ['--version'], {
      encoding: 'utf8',
      env: environment,
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 10_000,
    });
  } catch {
    // The program is missing or does not know the flag.
  }
  const version = /\d+(?:\.\d+)+\w*/.exec(output)?.[0] ?? null;
  versions.set(name, version);
  return version;
}
