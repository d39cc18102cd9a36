import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { start } from '../lib/process.ts';
import { program } from '../lib/programs.ts';
import type { Visit } from '../lib/types.ts';

/** Programs on WebKitGTK and QtWebEngine. Some want a session bus; each visit has its own. */

export function openMiniBrowser(visit: Visit, flags: readonly string[] = []): Promise<void> {
  start(visit, program('minibrowser'), [...flags, visit.url]);
  return Promise.resolve();
}

export function openEpiphany(visit: Visit, flags: readonly string[] = []): Promise<void> {
  const profile = join(visit.directory, 'profile');
  mkdirSync(profile);
  const args = ['--', program('epiphany'), `--profile=${profile}`, ...flags, visit.url];
  start(visit, program('dbus'), args, { GSETTINGS_BACKEND: 'memory' });
  return Promise.resolve();
}

export function openSurf(visit: Visit): Promise<void> {
  start(visit, program('surf'), [visit.url]);
  return Promise.resolve();
}

/** QtWebEngine takes Chromium's flags from the environment; only root needs one. */
const QT = process.getuid?.() === 0 ? { QTWEBENGINE_DISABLE_SANDBOX: '1' } : {};

export function openFalkon(visit: Visit, environment: Readonly<Record<string, string>> = {}): Promise<void> {
  start(visit, program('falkon'), ['--portable', '--no-extensions', visit.url], { ...QT, ...environment });
  return Promise.resolve();
}

export interface QutebrowserOptions {
  readonly flags?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

export function openQutebrowser(visit: Visit, options: QutebrowserOptions = {}): Promise<void> {
  const args = ['--temp-basedir', ...(options.flags ?? []), visit.url];
  start(visit, program('qutebrowser'), args, { ...QT, ...options.environment });
  return Promise.resolve();
}
