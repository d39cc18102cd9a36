import { connect, type Socket } from 'node:net';
import { type FirefoxOptions, openFirefox } from '../browsers/firefox.ts';
import { eventually } from '../lib/process.ts';
import type { Visit } from '../lib/types.ts';

/** Firefox's protocol Marionette, to which geckodriver translates WebDriver: length, colon, JSON of [0, id, command, params]. */

const PORT = 2828;

export interface Marionette {
  /** @returns the result of the command @throws {Error} the browser's error */
  readonly command: (name: string, params?: unknown) => Promise<unknown>;
  readonly close: () => void;
}

function dial(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(socket));
    socket.once('error', reject);
  });
}

/** Resolves with the next complete message. */
function receive(socket: Socket): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let got = Buffer.alloc(0);
    const take = (chunk: Buffer): void => {
      got = Buffer.concat([got, chunk]);
      const colon = got.indexOf(':');
      const length = colon === -1 ? Number.NaN : Number(got.toString('utf8', 0, colon));
      if (Number.isNaN(length) || got.length < colon + 1 + length) return;
      socket.off('data', take);
      socket.off('error', reject);
      resolve(JSON.parse(got.toString('utf8', colon + 1, colon + 1 + length)));
    };
    socket.on('data', take);
    socket.once('error', reject);
  });
}

async function send(socket: Socket, id: number, name: string, params: unknown): Promise<unknown> {
  const text = JSON.stringify([0, id, name, params]);
  const answer = receive(socket);
  socket.write(`${Buffer.byteLength(text)}:${text}`);
  const [, , error, result] = (await answer) as [number, number, unknown, unknown];
  if (error) throw new Error(`Marionette ${name}: ${JSON.stringify(error).slice(0, 300)}`);
  const whole = typeof result === 'object' && result !== null && 'value' in result;
  return whole ? result.value : result;
}

/** Opens a session with the Firefox on this port, for one command at a time. */
export async function connectMarionette(port: number): Promise<Marionette> {
  const socket = await dial(port);
  let id = 0;
  const command = (name: string, params: unknown = {}): Promise<unknown> => {
    id += 1;
    return send(socket, id, name, params);
  };
  await receive(socket);
  await command('WebDriver:NewSession');
  return { command, close: () => socket.destroy() };
}

export async function openByMarionette(visit: Visit, options: FirefoxOptions = {}): Promise<void> {
  await openFirefox(visit, { ...options, flags: ['--marionette', ...(options.flags ?? [])], url: null });
  const { command, close } = await eventually(() => connectMarionette(PORT));
  visit.defer(close);
  await command('WebDriver:Navigate', { url: visit.url });
}
