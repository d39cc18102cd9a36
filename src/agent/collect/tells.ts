import { attempt } from '../../browser/page.ts';
import { flag, text, within } from './read.ts';

/** Rule A3. Without `phantom`, `emit` and `spawn`: wallets and ordinary pages define those. */
const AUTOMATION =
  /^(?:\$?cdc_|__pw|__playwright|__selenium|__webdriver|domAutomation|_?callPhantom|__nightmare)/;
const NAMES_MAX = 16;
const NAME_MAX = 64;
/** Long, because canvas and WebGL hold the main thread; permissions are asked first and awaited last. */
const PERMISSION_MS = 1500;

/** Names of automation globals on the window and the document, whether enumerable or not. */
export function findAutomationGlobals(): string[] | null {
  return attempt(() =>
    [...Object.getOwnPropertyNames(window), ...Object.getOwnPropertyNames(document)]
      .filter((name) => AUTOMATION.test(name))
      .slice(0, NAMES_MAX)
      .map((name) => name.slice(0, NAME_MAX)),
  );
}

interface StackError {
  new (message: string): Error;
  prepareStackTrace?: unknown;
}

/** A page, frame or worker scope. */
interface Realm {
  readonly Error: StackError;
  readonly console: Pick<Console, 'debug'>;
}

/**
 * Rule M2: while a developer protocol listens, the console formats an error that it gets, and V8 calls
 * `Error.prepareStackTrace`. Developer tools that a person opened look the same.
 * @returns null if the browser lacks the hook
 */
export function consoleReadsStacks(realm: Realm): boolean | null {
  const { Error: RealmError, console: realmConsole } = realm;
  if (!('captureStackTrace' in RealmError)) return null;
  const before = Object.getOwnPropertyDescriptor(RealmError, 'prepareStackTrace');
  let called = false;
  return flag(() => {
    try {
      RealmError.prepareStackTrace = () => {
        called = true;
        return '';
      };
      // People see this text in the console, at its lowest level.
      realmConsole.debug(new RealmError('gpd looks whether a developer protocol is listening'));
    } finally {
      if (before) Object.defineProperty(RealmError, 'prepareStackTrace', before);
      else delete RealmError.prepareStackTrace;
    }
    return called;
  });
}

/** Permissions that Chromium asks the person for, and permissions that it decides without a setting. */
const BY_PROMPT = ['notifications', 'clipboard-read', 'geolocation', 'camera', 'microphone'];
const BY_ITSELF = ['background-sync', 'screen-wake-lock', 'midi', 'persistent-storage'];

async function stateOf(name: string): Promise<string | null> {
  const status = await within(PERMISSION_MS, () =>
    navigator.permissions.query({ name } as PermissionDescriptor),
  );
  return status && text(() => status.state);
}

const statesOf = (names: readonly string[]) => Promise.all(names.map(stateOf));

/**
 * Reads states without a prompt. Rule M4: two answers to one question differ. Rule A9: a driver's
 * `Browser.grantPermissions`.
 */
export async function collectPermissions() {
  const notification = text(() => Notification.permission);
  const [prompted, decided] = await Promise.all([statesOf(BY_PROMPT), statesOf(BY_ITSELF)]);
  const [state] = prompted;
  return {
    notificationMismatch:
      notification === null || state == null ? null : notification === 'denied' && state === 'prompt',
    granted: prompted.filter((each) => each === 'granted').length,
    barred: decided.filter((each) => each === 'denied').length,
  };
}

/** `process.type` of Electron; `node` where a DOM is imitated in Node. */
export function readProcessType(): string | null {
  const { process } = globalThis as { process?: { type?: unknown; versions?: { node?: unknown } } };
  return text(() => process?.type) ?? (attempt(() => process?.versions?.node) ? 'node' : null);
}
