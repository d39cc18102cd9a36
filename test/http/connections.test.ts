import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createClientLimit, createConnectionLimit, requireReader } from '../../src/http/connections.ts';
import { parseRange } from '../../src/lib/ip.ts';
import { ask, openWire } from '../support/http.ts';
import { type Gpd, startGpd } from '../support/server.ts';

/** One client holds so many connections, waits for so many answers on each, and reads what it asked for. */

const MAX = 3;
const HEALTH = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n';
const ANSWER = /^HTTP\/1\.1 200 /;
const countAnswers = (text: string): number => text.split('HTTP/1.1 200 ').length - 1;

let gpd: Gpd;
let proxied: Gpd;
beforeAll(async () => {
  const settings = { GPD_MAX_CONNECTIONS: String(MAX) };
  [gpd, proxied] = await Promise.all([
    startGpd({ settings }),
    startGpd({ settings: { ...settings, GPD_TRUSTED_PROXIES: '127.0.0.1', GPD_RATE_PRIVACY: 'off' } }),
  ]);
});
afterAll(() => Promise.all([gpd.stop(), proxied.stop()]));

/** A connection that has had its answer and stays open. */
async function hold(port: number) {
  const wire = await openWire(port);
  wire.send(HEALTH);
  await wire.until(ANSWER);
  return wire;
}

describe('the connections of one address', () => {
  it('are limited: one more is closed without an answer, until one of the others is closed', async () => {
    const wires = await Promise.all(Array.from({ length: MAX }, () => hold(gpd.port)));
    const refused = await openWire(gpd.port);
    refused.send(HEALTH);
    expect((await refused.closed).text).toBe('');
    // The open connections are still served.
    const [first, second] = wires;
    first?.send(HEALTH);
    await expect.poll(() => countAnswers(first?.received() ?? '')).toBe(2);
    second?.close();
    await expect
      .poll(() =>
        hold(gpd.port).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    for (const wire of wires) wire.close();
  });

  it('are not limited for a trusted proxy', async () => {
    const wires = await Promise.all(Array.from({ length: MAX + 5 }, () => hold(proxied.port)));
    for (const wire of wires) wire.close();
  });
});

describe('the requests of one client that wait for an answer', () => {
  it('are limited over all its connections, until one is answered', async () => {
    const limit = createClientLimit(2);
    const admitted: boolean[] = [];
    const responses: ServerResponse[] = [];
    const server = createServer((request, response) => {
      admitted.push(limit(String(request.headers['x-client']), response));
      responses.push(response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const wires: Awaited<ReturnType<typeof openWire>>[] = [];
    const send = async (client: string) => {
      const wire = await openWire(port);
      wires.push(wire);
      wire.send(`GET / HTTP/1.1\r\nHost: a\r\nX-Client: ${client}\r\n\r\n`);
      await expect.poll(() => admitted.length).toBe(wires.length);
    };
    for (const client of ['a', 'a', 'a', 'b']) await send(client);
    expect(admitted).toEqual([true, true, false, true]);
    responses[0]?.end();
    await wires[0]?.until(ANSWER);
    await send('a');
    expect(admitted.at(-1)).toBe(true);
    for (const wire of wires) wire.close();
  });
});

it('a monitor is answered behind an address whose other requests are too many', async () => {
  const unsent =
    'POST /me HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n';
  const wires = await Promise.all(Array.from({ length: 100 }, () => openWire(proxied.port)));
  for (const wire of wires) wire.send(unsent);
  const statusOf = async (path: string) => (await ask(proxied.url, path)).status;
  await expect.poll(() => statusOf('/docs')).toBe(429);
  expect([await statusOf('/healthz'), await statusOf('/readyz')]).toEqual([200, 200]);
  for (const wire of wires) wire.close();
  await expect.poll(() => statusOf('/docs')).toBe(200);
});

describe('the requests of one connection that wait for an answer', () => {
  const ask = async (count: number) => {
    const wire = await openWire(proxied.port);
    wire.send(HEALTH.repeat(count));
    return wire;
  };

  it('are sixteen: all are answered', async () => {
    const wire = await ask(16);
    await expect.poll(() => countAnswers(wire.received())).toBe(16);
    // They are counted while they wait, not for ever.
    wire.send(HEALTH.repeat(16));
    await expect.poll(() => countAnswers(wire.received())).toBe(32);
    wire.close();
  });

  it('a seventeenth closes the connection', async () => {
    const { text } = await (await ask(17)).closed;
    expect(countAnswers(text)).toBeLessThan(17);
  });
});

const PERIOD_MS = 50;
/** Larger than all that two kernels keep for a reader that does not read. */
const LARGE = Buffer.alloc(64 * 1024 * 1024);

/** A server of Node with the deadline for readers. @returns a client that asked, and what is open */
async function serve(answer: (response: ServerResponse) => unknown) {
  const server = createServer((_request, response) => {
    response.once('close', requireReader(response, PERIOD_MS));
    answer(response);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const openCount = (): Promise<number> =>
    new Promise((resolve) => void server.getConnections((_error, count) => resolve(count)));
  return { port: (server.address() as AddressInfo).port, openCount };
}

function askAndPause(port: number): void {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  socket.pause();
  socket.write(HEALTH);
  onTestFinished(() => void socket.destroy());
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

describe('an answer that is not read', () => {
  it('is ended when it is complete', async () => {
    const { port, openCount } = await serve((response) => void response.end(LARGE));
    askAndPause(port);
    await expect.poll(openCount).toBe(1);
    await expect.poll(openCount).toBe(0);
  });

  it('is ended when more of it would follow', async () => {
    const { port, openCount } = await serve((response) => void response.write(LARGE));
    askAndPause(port);
    await expect.poll(openCount).toBe(1);
    await expect.poll(openCount).toBe(0);
  });
});

describe('an answer that takes longer than the deadline', () => {
  it('is sent whole while it moves, and when its handler works that long', async () => {
    const { port } = await serve(async (response) => {
      await sleep(PERIOD_MS * 4);
      for (let part = 0; part < 8; part += 1) {
        response.write(`part ${part};`);
        await sleep(PERIOD_MS);
      }
      response.end('whole');
    });
    const wire = await openWire(port);
    wire.send(HEALTH);
    await wire.until(/part 7;[\s\S]*whole/);
    wire.close();
  });
});

describe('an address', () => {
  it.each([
    ['an IPv6 client is its /64', '2001:db8:1:2::1', '2001:db8:1:2:ffff::9', true],
    ['another /64 is another client', '2001:db8:1:2::1', '2001:db8:1:3::1', false],
    ['an IPv4 client is itself', '198.51.100.1', '::ffff:198.51.100.1', true],
    ['its neighbour is another client', '198.51.100.1', '198.51.100.2', false],
    ['a trusted proxy is exempt', '10.0.0.1', '10.0.0.1', false],
  ])('%s', (_name, first, second, isRefused) => {
    const limit = createConnectionLimit(1, [parseRange('10.0.0.0/8')]);
    const sockets = [first, second].map((remoteAddress) =>
      Object.defineProperty(new Socket(), 'remoteAddress', { value: remoteAddress }),
    );
    for (const socket of sockets) limit(socket);
    expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false, isRefused]);
    for (const socket of sockets) socket.destroy();
  });
});
