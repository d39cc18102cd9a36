import { removeTemporaryFiles } from '../db/staging-files.ts';
import type { OnProgress, Stage } from '../ops/backup-service.ts';
import { EXIT, failed, io, say } from './io-service.ts';

/**
 * Progress of a long command on stderr: one line that is redrawn on a terminal, a new line every ten seconds
 * elsewhere.
 */

const REDRAW_MS = 100;
const SAY_MS = 10_000;
/** Commands that take less time show no progress. */
export const QUIET_MS = 2000;
const BAR_WIDTH = 30;
const MEGA = 1e6;

interface Timed {
  readonly startedAt: number;
  readonly now: number;
}

export interface StageState extends Timed {
  readonly stage: Stage;
  readonly done: number;
  readonly total: number;
}

const secondsOf = ({ now, startedAt }: Timed): number => Math.max(0.001, (now - startedAt) / 1000);
const formatNumber = (n: number): string => Math.round(n).toLocaleString('en');

export function stageText({ stage, done, total, ...timed }: StageState): string {
  if (total <= 0 || done <= 0) return stage;
  const share = Math.min(1, done / total);
  const seconds = secondsOf(timed);
  const secondsLeft = Math.ceil(seconds / share - seconds);
  const size = `${formatNumber(done / MEGA)} of ${formatNumber(total / MEGA)} MB`;
  return `${stage}  ${Math.floor(share * 100)} %, ${size}, ${formatNumber(done / MEGA / seconds)} MB a second, ${secondsLeft} s left`;
}

export interface BarState extends Timed {
  readonly done: number;
  /** Plural noun after the count, such as `bundles`. */
  readonly unit: string;
  readonly bytes: number;
  /** Null when the input is a pipe. */
  readonly totalBytes: number | null;
}

function timeLeftText(share: number, elapsedSeconds: number): string {
  const seconds = Math.ceil(elapsedSeconds / share - elapsedSeconds);
  return seconds >= 60 ? `${Math.floor(seconds / 60)} min ${seconds % 60} s left` : `${seconds} s left`;
}

/** A bar with count, rate and time left. */
export function barText({ done, unit, bytes, totalBytes, ...timed }: BarState): string {
  const elapsed = secondsOf(timed);
  const share = totalBytes ? Math.min(1, bytes / totalBytes) : 0;
  const parts = [`${formatNumber(done)} ${unit}`, `${formatNumber(done / elapsed)} a second`];
  if (totalBytes !== null && bytes > 0) {
    const reached = Math.min(1, bytes / totalBytes);
    parts.unshift(`${Math.floor(reached * 100)} %`);
    parts.push(timeLeftText(reached, elapsed));
  }
  const filled = Math.round(share * BAR_WIDTH);
  return `${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)} ${parts.join(', ')}`;
}

interface LineOptions {
  /** Milliseconds until the first line on a terminal. */
  readonly drawFrom: number;
  /** Milliseconds until the first line elsewhere. */
  readonly sayFrom: number;
  /** False: the line is cleared at the end. */
  readonly staysOnScreen: boolean;
}

function createLine({ drawFrom, sayFrom, staysOnScreen: stays }: LineOptions) {
  const { stderr } = io();
  const terminal = stderr.isTTY === true;
  const every = terminal ? REDRAW_MS : SAY_MS;
  let last = Date.now() + (terminal ? drawFrom : sayFrom) - every;
  let hasDrawn = false;
  let hasEnded = false;
  return {
    update: (textAt: (now: number, terminal: boolean) => string): void => {
      const now = Date.now();
      if (hasEnded || now - last < every) return;
      last = now;
      const text = textAt(now, terminal);
      hasDrawn = terminal;
      const { columns = 80 } = stderr as { readonly columns?: number };
      if (terminal) stderr.write(`\r\u001b[K${text.slice(0, columns - 1)}`);
      else say(text);
    },
    end: (): void => {
      hasEnded = true;
      if (hasDrawn) stderr.write(stays ? '\n' : '\r\u001b[K');
    },
  };
}

/** Shows the stages of a backup or a restore. */
export function createStageLine(): { readonly update: OnProgress; readonly end: () => void } {
  const { update, end } = createLine({ drawFrom: QUIET_MS, sayFrom: QUIET_MS, staysOnScreen: false });
  let currentStage: { readonly stage: Stage; readonly startedAt: number } | null = null;
  return {
    update(stage, done, total) {
      if (stage !== currentStage?.stage) currentStage = { stage, startedAt: Date.now() };
      const { startedAt } = currentStage;
      update((now) => stageText({ stage, done, total, startedAt, now }));
    },
    end,
  };
}

export function createBar(unit: string, drawFrom = 0) {
  const startedAt = Date.now();
  const { update, end } = createLine({ drawFrom, sayFrom: SAY_MS, staysOnScreen: true });
  return {
    update: (state: Pick<BarState, 'done' | 'bytes' | 'totalBytes'>): void =>
      update((now, terminal) =>
        terminal ? barText({ ...state, unit, startedAt, now }) : `${state.done} ${unit}`,
      ),
    end,
  };
}

/** Shows how much of a long deletion or export is done. */
export function createCount(unit: string) {
  const bar = createBar(unit, QUIET_MS);
  return {
    onProgress: (done: number, total: number): void => bar.update({ done, bytes: done, totalBytes: total }),
    end: bar.end,
  };
}

/** Sent by Ctrl-C, by a service manager, and when the terminal is closed. */
const END_SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Calls `stop` at the first signal that would end the process while `work` runs. */
async function runStoppable<T>(stop: () => void, work: () => Promise<T>): Promise<T> {
  for (const signal of END_SIGNALS) process.once(signal, stop);
  try {
    return await work();
  } finally {
    for (const signal of END_SIGNALS) process.off(signal, stop);
  }
}

/**
 * Runs `work`, which makes unencrypted copies of the database, and deletes them when a signal interrupts it.
 */
export async function runWithCleanup<T>(work: (onProgress: OnProgress) => Promise<T>): Promise<T> {
  const stop = (): void => {
    removeTemporaryFiles();
    say('gpd: interrupted; unfinished files were removed');
    process.exit(EXIT.failure);
  };
  const { update, end } = createStageLine();
  return runStoppable(stop, () => work(update)).finally(end);
}

/** Runs the work of a command that writes one file. An interruption leaves no part of it behind. */
export async function runAbortable<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const abort = new AbortController();
  const stop = (): void => abort.abort(failed('interrupted; no file was written'));
  try {
    return await runStoppable(stop, () => work(abort.signal));
  } catch (error) {
    throw abort.signal.aborted ? abort.signal.reason : error;
  }
}
