import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { eventually } from './process.ts';
import { program } from './programs.ts';
import type { Visit } from './types.ts';

/** A hand before the screen: it reaches the display, never the browser. */

export type Gesture = 'moves' | 'moves from the corner' | 'one jump' | 'keys';

export type Point = readonly [x: number, y: number];
/** Inside the page of a window that begins at the left, also with developer tools beside it. */
const LEFT: Point = [430, 500];
/** Inside the page of a small window in the middle of the screen. */
export const MIDDLE: Point = [760, 560];
const STEPS = 26;
const HELD_MS = 85;

/** From the lower right, on a bow, faster in the middle; times differ a little as a hand's do. */
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
const CORNER = 'mousemove 1900 1060 sleep 0.2 mousemove 0 0 sleep 0.2'.split(' ');
const GESTURES: Readonly<Record<Gesture, (target: Point) => readonly string[]>> = {
  moves: move,
  // Weston moves its own pointer by differences: in the corner both are at one place.
  'moves from the corner': (target) => [...CORNER, ...move(target)],
  'one jump': ([x, y]) => ['mousemove', `${x}`, `${y}`, 'sleep', '0.6', ...PRESS],
  keys: () => ['key', 'Tab', 'sleep', '0.3', 'key', 'space'],
};

/** By XTEST, as on-screen keyboards and switch controls do. */
export async function press(visit: Visit, gesture: Gesture = 'moves', target = LEFT): Promise<void> {
  const options = { env: visit.environment, timeout: 20_000 };
  const xdotool = (args: readonly string[]) => promisify(execFile)(program('xdotool'), [...args], options);
  // Above developer tools in a window of their own. Some windows have no such name.
  const raise = ['search', '--onlyvisible', '--name', '^ready', 'windowactivate', '--sync'];
  await eventually(() => xdotool(raise), 2000).catch(() => {});
  await sleep(300);
  await xdotool(GESTURES[gesture](target));
}

/** The first bytes of the connection, then the screen's own messages, which a blind hand leaves unread. */
function makeReader(socket: Socket): (count: number) => Promise<Buffer> {
  return async (count) => {
    for (;;) {
      const chunk = socket.read(count) as Buffer | null;
      if (chunk) return chunk;
      await once(socket, 'readable');
    }
  };
}

const NO_SECURITY = 1;
const POINTER_EVENT = 5;

/** By RFC 6143 sections 7.1 to 7.3 and 7.5.5: what a viewer at the other end of the line sends. */
export async function pressRemotely(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  try {
    const read = makeReader(socket);
    socket.write(await read('RFB 003.008\n'.length));
    const [count = 0] = await read(1);
    await read(count);
    socket.write(Buffer.of(NO_SECURITY));
    await read(4);
    socket.write(Buffer.of(1));
    await read(24);
    const point = (x: number, y: number, buttons: number): void => {
      const message = Buffer.alloc(6);
      message.writeUInt8(POINTER_EVENT, 0);
      message.writeUInt8(buttons, 1);
      message.writeUInt16BE(x, 2);
      message.writeUInt16BE(y, 4);
      socket.write(message);
    };
    for (const { x, y, ms } of path(LEFT)) {
      point(x, y, 0);
      await sleep(ms);
    }
    await sleep(120);
    point(...LEFT, 1);
    await sleep(HELD_MS);
    point(...LEFT, 0);
    await sleep(200);
  } finally {
    socket.destroy();
  }
}
