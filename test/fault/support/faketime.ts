import { existsSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from '../../support/command.ts';

/** A clock that jumps: libfaketime in front of the C library. Timers go on, as the monotonic clock is not touched. */

const NAME = 'faketime/libfaketimeMT.so.1';

function findLibrary(): string | null {
  const places = ['/usr/lib', '/usr/local/lib'].flatMap((lib) => [
    lib,
    ...(existsSync(lib) ? readdirSync(lib).map((name) => join(lib, name)) : []),
  ]);
  return places.map((place) => join(place, NAME)).find((path) => existsSync(path)) ?? null;
}

const library = findLibrary();

export function missingFaketime(): string | null {
  return library === null ? 'libfaketime is not installed (apt-get install libfaketime)' : null;
}

export interface FakeClock {
  /** The process with this clock needs it. */
  readonly environment: Environment;
  /** Moves the clock to this offset, in seconds. */
  set(seconds: number): void;
  /** Milliseconds since 1970 by that clock. */
  now(): number;
}

export function createFakeClock(directory: string): FakeClock {
  const file = join(directory, 'faketime');
  let offset = 0;
  const setOffset = (seconds: number): void => {
    offset = seconds;
    // Whole or not at all: the process reads it at every look at the clock.
    writeFileSync(`${file}.new`, `${seconds < 0 ? '-' : '+'}${Math.abs(seconds)}\n`);
    renameSync(`${file}.new`, file);
  };
  setOffset(0);
  return {
    environment: {
      LD_PRELOAD: library ?? '',
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
    set: setOffset,
    now: () => Date.now() + offset * 1000,
  };
}
