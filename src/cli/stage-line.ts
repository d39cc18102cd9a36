import type { OnProgress, Stage } from '../ops/backup.ts';
import { io } from './io.ts';
import { say } from './output.ts';

/** One line about a long work of several stages; nothing for what is done within two seconds. */

const QUIET_MS = 2000;
const REDRAW_MS = 200;
const SAY_MS = 10_000;

export interface StageState {
  readonly stage: Stage;
  readonly done: number;
  readonly total: number;
  readonly startedAt: number;
  readonly now: number;
}

const MEGA = 1e6;

export function stageText({ stage, done, total, startedAt, now }: StageState): string {
  if (total <= 0 || done <= 0) return stage;
  const share = Math.min(1, done / total);
  const seconds = Math.max(0.001, (now - startedAt) / 1000);
  const left = Math.ceil(seconds / share - seconds);
  const rate = Math.round(done / MEGA / seconds).toLocaleString('en');
  const size = `${Math.round(done / MEGA).toLocaleString('en')} of ${Math.round(total / MEGA).toLocaleString('en')} MB`;
  return `${stage}  ${Math.floor(share * 100)} %, ${size}, ${rate} MB a second, ${left} s left`;
}

export interface StageLine {
  readonly update: OnProgress;
  end(): void;
}

/** Drawn over itself on a terminal, said now and then elsewhere; always on stderr. */
export function makeStageLine(clock: () => number): StageLine {
  const begun = clock();
  const { stderr } = io();
  const terminal = stderr.isTTY === true;
  let stage: Stage | null = null;
  let startedAt = begun;
  let last = terminal ? begun : begun - SAY_MS + QUIET_MS;
  let drawn = false;
  return {
    update(next, done, total) {
      const now = clock();
      if (next !== stage) {
        stage = next;
        startedAt = now;
      }
      if (now - begun < QUIET_MS || now - last < (terminal ? REDRAW_MS : SAY_MS)) return;
      last = now;
      const text = stageText({ stage: next, done, total, startedAt, now });
      if (!terminal) {
        say(text);
        return;
      }
      drawn = true;
      stderr.write(`\r\u001b[K${text}`);
    },
    end() {
      if (drawn) stderr.write('\r\u001b[K');
    },
  };
}
