import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { start } from '../lib/process.ts';
import { type ProgramName, program } from '../lib/programs.ts';
import type { Visit } from '../lib/types.ts';
import { addressOf } from './chromium.ts';

/** First-run pages, telemetry and updates off; nothing that a page could see. */
const QUIET = {
  'browser.aboutwelcome.enabled': false,
  'browser.shell.checkDefaultBrowser': false,
  'browser.startup.homepage_override.mstone': 'ignore',
  'datareporting.policy.dataSubmissionPolicyBypassNotification': true,
  'datareporting.healthreport.uploadEnabled': false,
  'app.normandy.enabled': false,
  'app.update.enabled': false,
  'browser.safebrowsing.downloads.remote.enabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'termsofuse.bypassNotification': true,
} as const;

export type Preferences = Readonly<Record<string, string | number | boolean>>;

export interface FirefoxOptions {
  readonly program?: ProgramName;
  readonly preferences?: Preferences;
  readonly flags?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly late?: boolean;
  readonly press?: boolean;
  /** Null: a driver opens the page. */
  readonly url?: null;
}

export function firefoxProfile(visit: Visit, preferences: Preferences = {}): string {
  const profile = join(visit.directory, 'profile');
  mkdirSync(profile, { recursive: true });
  const lines = Object.entries({ ...QUIET, ...preferences }).map(
    ([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`,
  );
  writeFileSync(join(profile, 'user.js'), `${lines.join('\n')}\n`);
  return profile;
}

export function openFirefox(visit: Visit, options: FirefoxOptions = {}): Promise<void> {
  const profile = firefoxProfile(visit, options.preferences);
  const address = addressOf(visit, options);
  const url = options.url === null ? [] : [address];
  const args = ['--no-remote', '--profile', profile, ...(options.flags ?? []), ...url];
  const environment = { MOZ_CRASHREPORTER_DISABLE: '1', ...options.environment };
  start(visit, program(options.program ?? 'firefox'), args, environment);
  return Promise.resolve();
}

const WINDOW_MS = 3500;

/** Responsive design mode has no setting that opens it: its key is pressed, as a person would. */
export async function openFirefoxPhoneView(visit: Visit, userAgent: string): Promise<void> {
  const view = {
    userAgent,
    'touchSimulation.enabled': true,
    'viewport.width': 390,
    'viewport.height': 844,
    'viewport.pixelRatio': 3,
    'reloadConditions.userAgent': true,
  };
  const named = Object.entries(view).map(([name, value]) => [`devtools.responsive.${name}`, value]);
  await openFirefox(visit, { late: true, preferences: Object.fromEntries(named) as Preferences });
  await sleep(WINDOW_MS);
  const find = ['search', '--sync', '--onlyvisible', '--class', 'firefox', 'windowactivate', '--sync'];
  execFileSync(program('xdotool'), [...find, 'key', 'ctrl+shift+m'], {
    env: visit.environment,
    stdio: 'ignore',
    timeout: 10_000,
  });
}
