import { flag } from './read.ts';

interface StackError {
  new (): Error;
  prepareStackTrace?: unknown;
}

/** A page, frame or worker scope. */
export interface Realm {
  readonly Error: StackError;
  readonly console: Pick<Console, 'debug'>;
}

/**
 * M2: with the developer protocol listening, the console formats an error it is given, and V8 then calls
 * `Error.prepareStackTrace`. Developer tools that a person opened look the same.
 * Null where the hook does not exist.
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
      realmConsole.debug(new RealmError());
    } finally {
      if (before) Object.defineProperty(RealmError, 'prepareStackTrace', before);
      else delete RealmError.prepareStackTrace;
    }
    return called;
  });
}
