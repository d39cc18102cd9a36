import { connect, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { expectCore, post } from '../support/expect.ts';
import { startProcess } from '../support/process.ts';
import { createBundle } from '../support/seal.ts';
import { pause, readAnswers } from './support/raw.ts';
import { FULL, sized, tell } from './support/size.ts';

/** Crowds that hold connections open, in silence or a byte at a time, while others are served. */

const IDLE = sized(500, 10_000);
const SLOW = sized(60, 1000);
/** The limit is 10 s, looked at once a second; the rest is for a machine that does other things too. */
const CUT_OFF_MS = 120_000;

interface IdleSocket {
  readonly socket: Socket;
  text: string;
  closedAt: number | null;
}

/** In small groups: the queue of a listening socket is short. */
async function holdOpen(port: number, count: number, first: string): Promise<IdleSocket[]> {
  const all: IdleSocket[] = [];
  while (all.length < count) {
    const group = Array.from({ length: Math.min(100, count - all.length) }, () => {
      const idleSocket: IdleSocket = { socket: connect(port, '127.0.0.1'), text: '', closedAt: null };
      idleSocket.socket
        .on('error', () => {})
        .once('close', () => {
          idleSocket.closedAt = performance.now();
        });
      idleSocket.socket.setEncoding('latin1').on('data', (chunk: string) => {
        idleSocket.text += chunk;
      });
      if (first !== '') idleSocket.socket.write(first);
      return idleSocket;
    });
    await Promise.all(
      group.map(({ socket }) => new Promise<void>((resolve) => socket.once('connect', resolve))),
    );
    all.push(...group);
  }
  return all;
}

it(
  `${IDLE} connections that asked once and stay: a newcomer is served, and nobody of them is cut off`,
  async () => {
    const gpd = await startProcess();
    const sockets = await holdOpen(gpd.port, IDLE, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    const answered = (): number =>
      sockets.filter(({ text }) => readAnswers(text).answers[0]?.status === 200).length;
    while (answered() < IDLE) await pause(50);
    const startedAt = performance.now();
    expectCore(await post(gpd.url, createBundle(gpd.targets[0]!)), 'ok');
    const ms = performance.now() - startedAt;
    expect(sockets.filter(({ closedAt }) => closedAt !== null)).toEqual([]);
    tell('idle', `${IDLE} idle connections, a bundle answered in ${ms.toFixed(0)} ms beside them`);
    for (const { socket } of sockets) socket.destroy();
    await gpd.stop();
  },
  FULL ? 300_000 : 60_000,
);

const POST = 'POST /_fp/i/v1 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';

it.concurrent.each([
  ['heads that never end', POST, 'X-A: b\r\n', 408],
  ['bodies that never end', `${POST}Content-Length: 30000\r\n\r\n`, ' ', 408],
  ['chunks that never end', `${POST}Transfer-Encoding: chunked\r\n\r\n`, '1\r\n \r\n', 408],
  [
    'bodies behind an early refusal',
    'POST /v1/consent/grant HTTP/1.1\r\nHost: x\r\nContent-Length: 30000\r\n\r\n',
    ' ',
    401,
  ],
] as const)(
  `${SLOW} slow senders of %s are cut off with one answer, and others are served meanwhile`,
  async (name, first, piece, status) => {
    const gpd = await startProcess();
    const startedAt = performance.now();
    const sockets = await holdOpen(gpd.port, SLOW, first);
    const open = (): IdleSocket[] => sockets.filter(({ closedAt }) => closedAt === null);
    let slowest = 0;
    while (open().length > 0 && performance.now() - startedAt < CUT_OFF_MS) {
      for (const { socket } of open()) socket.write(piece);
      const requestedAt = performance.now();
      expectCore(await post(gpd.url, createBundle(gpd.targets[0]!)), 'ok');
      slowest = Math.max(slowest, performance.now() - requestedAt);
      await pause(500);
    }
    expect(open()).toEqual([]);
    const got = sockets.map(({ text }) => {
      const { answers, rest } = readAnswers(text);
      return `${answers.map((answer) => answer.status).join(' ')}${rest}`;
    });
    // A byte that was on its way when the server closed resets the connection: its answer may be lost, never doubled.
    expect(got.filter((one) => one !== String(status) && one !== '')).toEqual([]);
    expect(got.filter((one) => one !== '').length).toBeGreaterThan(SLOW / 2);
    tell('slow', `${SLOW} × ${name}: cut off; a bundle beside them took at most ${slowest.toFixed(0)} ms`);
    await gpd.stop();
  },
  60_000,
);

it('a sender that leaves in the middle is nobody’s fault', async () => {
  const gpd = await startProcess();
  const routes = ['/_fp/i/v1', '/me', '/v1/consent/grant', '/privacy/dsar'];
  for (const path of routes) {
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{"a":`;
    const [idleSocket] = await holdOpen(gpd.port, 1, head);
    await pause(100);
    idleSocket?.socket.resetAndDestroy();
  }
  await pause(300);
  expect(gpd.logs()).not.toContain('"fault"');
  await gpd.stop();
});
