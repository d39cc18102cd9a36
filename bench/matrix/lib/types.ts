import type { Signals } from '../../../src/schema/signals.ts';
import type { ProgramName } from './programs.ts';

/** The user of the browser. `person` is a browser that nothing drives. */
export type Truth = 'person' | 'automation';

/** One browser with a profile of its own; `defer` undoes in reverse order whatever was started. */
export interface Visit {
  /** The page that reports by itself as soon as it is open. */
  readonly url: string;
  /** A page like that, loaded a second time after some seconds, for options that need a set-up in the browser first. */
  readonly lateUrl: string;
  /** The page with a button over all of it: it reports after a press, when it has asked gpd once more. */
  readonly pressUrl: string;
  readonly latePressUrl: string;
  /** The button is there. @throws after some time */
  readonly ready: () => Promise<void>;
  /** A fresh directory: profile, home, copies of programs. */
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
  /** Programs it cannot do without; the first says the version, unless the page knows better. */
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

/** A run that could not be made: why, and what to do about it. */
export interface NotRun {
  readonly names: RunNames;
  readonly why: string;
}

export type Outcome = MeasuredRun | NotRun;
