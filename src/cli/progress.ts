import type { OnProgress, Stage } from '../ops/backup.ts';
import { EXIT, io, say } from './io.ts';

/** One line about a long work, on stderr: drawn over itself on a terminal, said now and then elsewhere (look.md, Terminal). */

const REDRAW_MS = 100;
const SAY_MS = 10_000;
/** Most work takes less: nothing is said of it. */
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
const number = (n: number): string => Math.round(n).toLocaleString('en');

export function stageText({ stage, done, total, ...timed }: StageState): string {
  if (total <= 0 || done <= 0) return stage;
  const share = Math.min(1, done / total);
  const seconds = secondsOf(timed);
  const left = Math.ceil(seconds / share - seconds);
  const size = `${number(done / MEGA)} of ${number(total / MEGA)} MB`;
  return `${stage}  ${Math.floor(share * 100)} %, ${size}, ${number(done / MEGA / seconds)} MB a second, ${left} s left`;
}

export interface BarState extends Timed {
  readonly done: number;
  /** What is counted. */
  readonly unit: string;
  readonly bytes: number;
  /** Null when the input is a pipe. */
  readonly totalBytes: number | null;
}

function timeLeft(share: number, elapsedSeconds: number): string {
  const seconds = Math.ceil(elapsedSeconds / share - elapsedSeconds);
  return seconds >= 60 ? `${Math.floor(seconds / 60)} min ${seconds % 60} s left` : `${seconds} s left`;
}

/** A bar with count, rate and time left. */
export function barText({ done, unit, bytes, totalBytes, ...timed }: BarState): string {
  const elapsed = secondsOf(timed);
  const share = totalBytes ? Math.min(1, bytes / totalBytes) : 0;
  const parts = [`${number(done)} ${unit}`, `${number(done / elapsed)} a second`];
  if (totalBytes !== null && bytes > 0) {
    const reached = Math.min(1, bytes / totalBytes);
    parts.unshift(`${Math.floor(reached * 100)} %`);
    parts.push(timeLeft(reached, elapsed));
  }
  const filled = Math.round(share * BAR_WIDTH);
  return `${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)} ${parts.join(', ')}`;
}

interface LineOptions {
  /** Nothing is drawn before so long, and nothing said before so long. */
  readonly drawFrom: number;
  readonly sayFrom: number;
  /** The last line that was drawn is left on the terminal. */
  readonly stays: boolean;
}

function createLine({ drawFrom, sayFrom, stays }: LineOptions) {
  const { stderr } = io();
  const terminal = stderr.isTTY === true;
  const every = terminal ? REDRAW_MS : SAY_MS;
  let last = Date.now() + (terminal ? drawFrom : sayFrom) - every;
  let drawn = false;
  let ended = false;
  return {
    update: (textAt: (now: number, terminal: boolean) => string): void => {
      const now = Date.now();
      if (ended || now - last < every) return;
      last = now;
      const text = textAt(now, terminal);
      drawn = terminal;
      const { columns = 80 } = stderr as { readonly columns?: number };
      if (terminal) stderr.write(`\r\u001b[K${text.slice(0, columns - 1)}`);
      else say(text);
    },
    end: (): void => {
      ended = true;
      if (drawn) stderr.write(stays ? '\n' : '\r\u001b[K');
    },
  };
}

/** About a backup: a work of several stages. */
export function createStageLine(): { readonly update: OnProgress; readonly end: () => void } {
  const { update, end } = createLine({ drawFrom: QUIET_MS, sayFrom: QUIET_MS, stays: false });
  let begun: { readonly stage: Stage; readonly startedAt: number } | null = null;
  return {
    update(stage, done, total) {
      if (stage !== begun?.stage) begun = { stage, startedAt: Date.now() };
      const { startedAt } = begun;
      update((now) => stageText({ stage, done, total, startedAt, now }));
    },
    end,
  };
}

export function createBar(unit: string, drawFrom = 0) {
  const startedAt = Date.now();
  const { update, end } = createLine({ drawFrom, sayFrom: SAY_MS, stays: true });
  return {
    update: (state: Pick<BarState, 'done' | 'bytes' | 'totalBytes'>): void =>
      update((now, terminal) =>
        terminal ? barText({ ...state, unit, startedAt, now }) : `${state.done} ${unit}`,
      ),
    end,
  };
}

/** Ctrl-C, a manager that stops the unit, a terminal that is closed. */
const ENDS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Calls `stop` at the first signal that would end the process while `work` runs. */
export async function whileRunning<T>(stop: () => void, work: () => Promise<T>): Promise<T> {
  for (const signal of ENDS) process.once(signal, stop);
  try {
    return await work();
  } finally {
    for (const signal of ENDS) process.off(signal, stop);
  }
}

/** For work on copies in the clear, which takes several stages: none is left behind. */
export async function leavingNothing<T>(work: (onProgress: OnProgress) => Promise<T>): Promise<T> {
  const { removeTemporaryFiles } = await import('../db/files.ts');
  const stop = (): void => {
    removeTemporaryFiles();
    say('gpd: interrupted; unfinished files were removed');
    process.exit(EXIT.failure);
  };
  const { update, end } = createStageLine();
  return whileRunning(stop, () => work(update)).finally(end);
}
