import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { start } from '../lib/process.ts';
import { type ProgramName, program, programVersion } from '../lib/programs.ts';
import type { Visit } from '../lib/types.ts';
import { ADD_ONS, addOnFlags } from './add-ons.ts';

/** Flags that no page can see: they prevent first-run windows, and let root start a browser. */
export const QUIET = [
  ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
  '--no-first-run',
  '--no-default-browser-check',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--password-store=basic',
];

export interface ChromiumOptions {
  readonly program?: ProgramName;
  readonly flags?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Written to the profile before the start. */
  readonly preferences?: unknown;
  readonly addOn?: keyof typeof ADD_ONS;
  /** Loads the page a second time, after the browser's own windows are open. */
  readonly late?: boolean;
  /** Opens the page with the button. */
  readonly press?: boolean;
}

/** @returns the address of the page that these options need */
export function addressOf(
  visit: Visit,
  { late: isLate, press }: Pick<ChromiumOptions, 'late' | 'press'>,
): string {
  if (press === true) return isLate === true ? visit.latePressUrl : visit.pressUrl;
  return isLate === true ? visit.lateUrl : visit.url;
}

/** @returns the User-Agent of the installed Chromium when it is not headless */
export function desktopChrome(system = 'X11; Linux x86_64'): string {
  const major = programVersion('chromium')?.split('.', 1)[0] ?? '0';
  return `Mozilla/5.0 (${system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${major}.0.0.0 Safari/537.36`;
}

export function profileOf(visit: Pick<Visit, 'directory'>): string {
  return join(visit.directory, 'profile');
}

/** Starts the browser as a person does, with the address on the command line. */
export function openChromium(visit: Visit, options: ChromiumOptions = {}): Promise<void> {
  const profile = profileOf(visit);
  if (options.preferences !== undefined) {
    mkdirSync(join(profile, 'Default'), { recursive: true });
    writeFileSync(join(profile, 'Default', 'Preferences'), JSON.stringify(options.preferences));
  }
  const url = addressOf(visit, options);
  const addOn = options.addOn === undefined ? [] : addOnFlags(visit, ADD_ONS[options.addOn]);
  const args = [...QUIET, `--user-data-dir=${profile}`, ...addOn, ...(options.flags ?? []), url];
  start(visit, program(options.program ?? 'chromium'), args, options.environment);
  return Promise.resolve();
}
