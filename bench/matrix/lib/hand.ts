import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { eventually } from './process.ts';
import { program } from './programs.ts';
import type { Visit } from './types.ts';

/** Moves the pointer and presses as a person's hand does: through the display, not through an interface of the browser. */

export type Gesture = 'moves' | 'one jump' | 'keys';

type Point = readonly [x: number, y: number];
/** A point inside the page of a window at the left edge, even with developer tools docked. */
const START_POINT: Point = [430, 500];
const STEPS = 26;
const HELD_MS = 85;

/** Computes a curved path from the lower right, faster in the middle, with slightly irregular times. */
function path([x, y]: Point): readonly { readonly x: number; readonly y: number; readonly ms: number }[] {
  return Array.from({ length: STEPS }, (_, step) => {
    const part = (step + 1) / STEPS;
    const eased = part * part * (3 - 2 * part);
    const bow = 40 * Math.sin(Math.PI * eased);
    return {
      x: Math.round(x + 290 * (1 - eased) + bow),
      y: Math.round(y + 190 * (1 - eased) - bow),
      ms: 11 + ((step * 7) % 9),
    };
  });
}

const seconds = (ms: number): string => (ms / 1000).toFixed(3);

const PRESS = ['mousedown', '1', 'sleep', seconds(HELD_MS), 'mouseup', '1'];
const move = (target: Point): readonly string[] => [
  ...path(target).flatMap(({ x, y, ms }) => ['mousemove', `${x}`, `${y}`, 'sleep', seconds(ms)]),
  'sleep',
  '0.12',
  ...PRESS,
];
const GESTURES: Readonly<Record<Gesture, readonly string[]>> = {
  moves: move(START_POINT),
  'one jump': ['mousemove', `${START_POINT[0]}`, `${START_POINT[1]}`, 'sleep', '0.6', ...PRESS],
  keys: ['key', 'Tab', 'sleep', '0.3', 'key', 'space'],
};

/** Presses through the X extension XTEST, as on-screen keyboards and switch controls do. */
export async function press(visit: Visit, gesture: Gesture = 'moves'): Promise<void> {
  const options = { env: visit.environment, timeout: 20_000 };
  const xdotool = (args: readonly string[]) => promisify(execFile)(program('xdotool'), [...args], options);
  // Raises the page above a separate window of developer tools. Some browser windows do not have this name.
  const raise = ['search', '--onlyvisible', '--name', '^ready', 'windowactivate', '--sync'];
  await eventually(() => xdotool(raise), 2000).catch(() => {});
  await sleep(300);
  await xdotool(GESTURES[gesture]);
}
