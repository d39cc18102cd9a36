import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The programs that the runs need, where they are, and how to get them. */

interface Program {
  readonly names: readonly string[];
  /** Beside the PATH. */
  readonly places?: readonly string[];
  readonly remedy: string;
}

const VENDOR = "its maker's package repository";

const PROGRAMS = {
  xvfb: { names: ['Xvfb'], remedy: 'apt-get install xvfb' },
  xvnc: { names: ['Xvnc'], remedy: 'apt-get install tigervnc-standalone-server' },
  xephyr: { names: ['Xephyr'], remedy: 'apt-get install xserver-xephyr' },
  xorg: { names: ['Xorg'], places: ['/usr/lib/xorg'], remedy: 'apt-get install xorgxrdp' },
  xrdp: { names: ['xrdp'], places: ['/usr/sbin'], remedy: 'apt-get install xrdp' },
  xfreerdp: { names: ['xfreerdp'], remedy: 'apt-get install freerdp2-x11' },
  sway: { names: ['sway'], remedy: 'apt-get install sway' },
  wayvnc: { names: ['wayvnc'], remedy: 'apt-get install wayvnc' },
  weston: { names: ['weston'], remedy: 'apt-get install weston' },
  openbox: { names: ['openbox'], remedy: 'apt-get install openbox' },
  xdotool: { names: ['xdotool'], remedy: 'apt-get install xdotool' },
  dbus: { names: ['dbus-run-session'], remedy: 'apt-get install dbus' },
  'dbus-daemon': { names: ['dbus-daemon'], remedy: 'apt-get install dbus' },
  chromium: { names: ['chromium', 'chromium-browser'], remedy: 'apt-get install chromium' },
  'headless-shell': { names: ['chromium-headless-shell'], remedy: 'apt-get install chromium-headless-shell' },
  chromedriver: { names: ['chromedriver'], remedy: 'apt-get install chromium-driver' },
  chrome: {
    names: ['google-chrome-stable', 'google-chrome'],
    remedy: `install google-chrome-stable from ${VENDOR}`,
  },
  edge: { names: ['microsoft-edge-stable'], remedy: `install microsoft-edge-stable from ${VENDOR}` },
  brave: { names: ['brave-browser', 'brave'], remedy: `install brave-browser from ${VENDOR}` },
  opera: { names: ['opera'], remedy: `install opera-stable from ${VENDOR}` },
  vivaldi: { names: ['vivaldi-stable', 'vivaldi'], remedy: `install vivaldi-stable from ${VENDOR}` },
  firefox: { names: ['firefox-esr', 'firefox'], remedy: 'apt-get install firefox-esr' },
  librewolf: { names: ['librewolf'], remedy: `install librewolf from ${VENDOR}` },
  minibrowser: {
    names: ['MiniBrowser'],
    places: ['4.1', '4.0'].map((api) => `/usr/lib/x86_64-linux-gnu/webkit2gtk-${api}`),
    remedy: 'apt-get install webkit2gtk-driver',
  },
  webkitdriver: { names: ['WebKitWebDriver'], remedy: 'apt-get install webkit2gtk-driver' },
  epiphany: { names: ['epiphany-browser', 'epiphany'], remedy: 'apt-get install epiphany-browser' },
  surf: { names: ['surf'], remedy: 'apt-get install surf' },
  falkon: { names: ['falkon'], remedy: 'apt-get install falkon' },
  qutebrowser: { names: ['qutebrowser'], remedy: 'apt-get install qutebrowser' },
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

/** Its path, or null. */
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

/** Why a run cannot be made and what to do about it; null when all is there. */
export function missingPrograms(names: readonly ProgramName[]): string | null {
  const missing = names.filter((name) => findProgram(name) === null);
  if (missing.length === 0) return null;
  return missing
    .map((name) => `${PROGRAMS[name].names[0]} is not installed (${PROGRAMS[name].remedy})`)
    .join('; ');
}

const versions = new Map<string, string | null>();

/** As `--version` says it; null when it does not. */
export function programVersion(name: ProgramName, environment?: NodeJS.ProcessEnv): string | null {
  const known = versions.get(name);
  if (known !== undefined) return known;
  let said = '';
  try {
    said = execFileSync(program(name), ['--version'], {
      encoding: 'utf8',
      ...(environment ? { env: environment } : {}),
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 10_000,
    });
  } catch {
    // not there, or it knows no such flag
  }
  const version = /\d+(?:\.\d+)+\w*/.exec(said)?.[0] ?? null;
  versions.set(name, version);
  return version;
}
