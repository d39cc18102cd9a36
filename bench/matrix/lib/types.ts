import type { Signals } from '../../../src/schema/signals.ts';
import type { ProgramName } from './programs.ts';

/** The true user of the browser: a `person`, or a program that drives it. */
export type Truth = 'person' | 'automation';

/** One browser with a new profile. `defer` adds a cleanup; cleanups run in reverse order. */
export interface Visit {
  /** The page that reports as soon as it is loaded. */
  readonly url: string;
  /** Loads the same page again after some seconds, for options that need a setup in the browser first. */
  readonly lateUrl: string;
  /** The page with a button as large as itself, which reports after a press and a second question to gpd. */
  readonly pressUrl: string;
  readonly latePressUrl: string;
  /** Resolves when the button can be pressed. @throws {Error} on a timeout */
  readonly ready: () => Promise<void>;
  /** A new directory for profile, home and copies of programs. */
  readonly directory: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly defer: (undo: () => unknown) => void;
}

export interface RunNames {
  readonly browser: string;
  readonly driver: string;
  readonly setup: string;
  readonly truth: Truth;
}

export interface Run extends RunNames {
  /** Programs that the run needs; the version shown is that of the first, unless the page reports one. */
  readonly programs: readonly ProgramName[];
  readonly open: (visit: Visit) => Promise<void>;
}

/** The verdict of one visit. */
export interface Measured {
  /** `refused` when the agent sent nothing, because of Global Privacy Control. */
  readonly class: string;
  readonly rules: readonly string[];
  readonly defenses: readonly string[];
  readonly score: number | null;
  readonly needsAttestation: boolean;
}

/** The plaintext that the agent sealed, and the headers of its request. */
export interface Captured {
  readonly signals: Signals;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface MeasuredRun {
  readonly names: RunNames;
  readonly version: string;
  readonly measured: Measured;
  /** The verdict of `update()` after a press; null where nothing was pressed. */
  readonly pressed: Measured | null;
}

/** A run that could not be made, with the reason and a remedy. */
export interface NotRun {
  readonly names: RunNames;
  readonly why: string;
}

export type Outcome = MeasuredRun | NotRun;
