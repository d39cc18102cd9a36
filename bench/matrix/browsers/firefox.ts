import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { start } from '../lib/process.ts';
import { program } from '../lib/programs.ts';
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

type Preferences = Readonly<Record<string, string | number | boolean>>;

export interface FirefoxOptions {
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
  start(visit, program('firefox'), args, environment);
  return Promise.resolve();
}
