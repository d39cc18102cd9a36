import { attempt, flag, text, within } from './read.ts';

/** A3. Not `phantom`, `emit`, `spawn`: wallets and ordinary pages define those. */
const AUTOMATION =
  /^(?:\$?cdc_|__pw|__playwright|__selenium|__webdriver|domAutomation|_?callPhantom|__nightmare)/;
const NAMES_MAX = 16;
const NAME_MAX = 64;
const PERMISSION_MS = 200;

/** Names of automation globals on the window and the document, whether enumerable or not. */
export function automationGlobals(): string[] | null {
  return attempt(() =>
    [...Object.getOwnPropertyNames(window), ...Object.getOwnPropertyNames(document)]
      .filter((name) => AUTOMATION.test(name))
      .slice(0, NAMES_MAX)
      .map((name) => name.slice(0, NAME_MAX)),
  );
}

/** M4: the two answers to one question differ. */
export async function notificationMismatch(): Promise<boolean | null> {
  const permission = text(() => Notification.permission);
  if (permission === null) return null;
  const status = await within(PERMISSION_MS, () => navigator.permissions.query({ name: 'notifications' }));
  return status && flag(() => permission === 'denied' && status.state === 'prompt');
}

/** `process.type` of Electron; `node` where a DOM is imitated in Node. */
export function processType(): string | null {
  const { process } = globalThis as { process?: { type?: unknown; versions?: { node?: unknown } } };
  return text(() => process?.type) ?? (attempt(() => process?.versions?.node) ? 'node' : null);
}
