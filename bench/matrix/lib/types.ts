import type { Signals } from '../../../src/schema/signals.ts';
import type { ProgramName } from './programs.ts';

/** Who sits before the browser. `person` is a browser that nothing drives. */
export type Truth = 'person' | 'automation';

/** How a person comes to a second page of the site. */
export type Way = 'link' | 'form';

/** One browser with a profile of its own; `defer` undoes in reverse order whatever was started. */
export interface Visit {
  /** The page that reports by itself as soon as it is open. */
  readonly url: string;
  /** The same, loaded a second time after some seconds, for what has to be set up in the browser first. */
  readonly lateUrl: string;
  /** The page with a button over all of it: it reports after a press, when it has asked gpd once more. */
  readonly pressUrl: string;
  readonly latePressUrl: string;
  /** A page with a link or a form over all of it: a press leads to the page that reports. */
  readonly followUrl: (way: Way, late: boolean) => string;
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
  /** `out`: nobody who wrote rules had looked at it before its first run, and no rule was changed after it. */
  readonly sample?: 'out';
}

export interface Run extends RunNames {
  /** Programs it cannot do without; the first says the version, unless the page knows better. */
  readonly programs: readonly ProgramName[];
  /** What else may be missing, and what to do about it. */
  readonly missing?: () => string | null;
  readonly open: (visit: Visit) => Promise<void>;
}

export interface BotdVerdict {
  readonly bot: boolean;
  readonly kind: string | null;
}

/** What gpd and the peer say of one visit. */
export interface Measured {
  /** `refused` when the agent sent nothing, because of Global Privacy Control. */
  readonly class: string;
  readonly rules: readonly string[];
  readonly defenses: readonly string[];
  readonly score: number | null;
  readonly needsAttestation: boolean;
  readonly botd: BotdVerdict | null;
}

/** What the agent sealed and the headers it came with. Written to a directory only when the caller names one. */
export interface Captured {
  readonly signals: Signals;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface Sides {
  readonly measured: Measured;
  readonly captured: Captured | null;
}

export interface MeasuredRun extends Sides {
  readonly names: RunNames;
  readonly version: string;
  /** What `update()` said after a press; null where nothing was pressed. */
  readonly pressed: Sides | null;
}

/** A run that could not be made: why, and what to do about it. */
export interface NotRun {
  readonly names: RunNames;
  readonly why: string;
}

export type Outcome = MeasuredRun | NotRun;
