import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectMarionette, type Marionette } from '../../../bench/matrix/drivers/marionette.ts';
import { eventually } from '../../../bench/matrix/lib/process.ts';
import { describeWithTool } from '../../support/tools.ts';

const PATHS = ['/usr/bin/firefox-esr', '/usr/bin/firefox', '/snap/bin/firefox'];

/** Its own port, no first-run pages, no tabs of the last time; nothing that a page could see. */
const PREFERENCES = {
  'marionette.port': 0,
  'browser.aboutwelcome.enabled': false,
  'browser.sessionstore.resume_from_crash': false,
  'browser.shell.checkDefaultBrowser': false,
  'browser.startup.homepage_override.mstone': 'ignore',
  'datareporting.policy.dataSubmissionPolicyBypassNotification': true,
  'app.update.enabled': false,
  'termsofuse.bypassNotification': true,
};

const END_MS = 15_000;

export type Preferences = Readonly<Record<string, string | number | boolean>>;

export interface Firefox extends Marionette {
  /** Runs in the browser's own window, which can do what a person does with its menus. */
  readonly inWindow: (script: string) => Promise<unknown>;
  /** Quits from the menu, as a person does; resolves once the process has ended. */
  readonly quit: () => Promise<void>;
}

/** The browser under test: `FIREFOX`, or the first of the usual places; null when there is none. */
export function findFirefox(): string | null {
  const named = process.env['FIREFOX'];
  return (named ? [named] : PATHS).find((path) => existsSync(path)) ?? null;
}

/** A suite that needs Firefox. Without it the suite says so by name, and fails where the tools are required. */
export function describeInFirefox(name: string, suite: () => void): void {
  const missing = findFirefox() === null ? 'Firefox is not installed (apt-get install firefox-esr)' : null;
  describeWithTool(name, missing, suite);
}

function endGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  } catch {
    // already gone
  }
}

async function quit(child: ChildProcess, session: Marionette | null): Promise<void> {
  const exited = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : null;
  // It may close the connection before it has answered.
  session?.command('Marionette:Quit', { flags: ['eAttemptQuit'] }).catch(() => {});
  await Promise.race([exited, sleep(END_MS, undefined, { ref: false })]);
  session?.close();
  endGroup(child);
}

/** A headless Firefox on the profile in `directory`, which is made when it is not there; the caller quits it. */
export async function startFirefox(directory: string, preferences: Preferences = {}): Promise<Firefox> {
  const program = findFirefox();
  if (program === null) throw new Error('Firefox is not installed');
  const profile = join(directory, 'profile');
  const port = join(profile, 'MarionetteActivePort');
  mkdirSync(profile, { recursive: true });
  rmSync(port, { force: true });
  const lines = Object.entries({ ...PREFERENCES, ...preferences }).map(
    ([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`,
  );
  writeFileSync(join(profile, 'user.js'), `${lines.join('\n')}\n`);
  const flags = ['--headless', '--marionette', '--remote-allow-system-access', '--no-remote'];
  const child = spawn(program, [...flags, '--profile', profile], {
    detached: true,
    env: { ...process.env, HOME: directory, MOZ_CRASHREPORTER_DISABLE: '1' },
    stdio: 'ignore',
  });
  child.on('error', () => {});
  const atExit = (): void => endGroup(child);
  process.once('exit', atExit);
  child.once('exit', () => process.off('exit', atExit));
  try {
    const session = await eventually(
      async () => connectMarionette(Number(readFileSync(port, 'utf8'))),
      120_000,
    );
    const inWindow = async (script: string): Promise<unknown> => {
      await session.command('Marionette:SetContext', { value: 'chrome' });
      const answer = await session.command('WebDriver:ExecuteScript', { script, args: [] });
      await session.command('Marionette:SetContext', { value: 'content' });
      return answer;
    };
    return { ...session, inWindow, quit: () => quit(child, session) };
  } catch (error) {
    await quit(child, null);
    throw error;
  }
}
