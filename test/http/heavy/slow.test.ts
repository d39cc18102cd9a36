import { describe, expect, it, vi } from 'vitest';
import { execute } from '../../support/database.ts';
import { expectCore, INGEST, post, REQUEST_ID } from '../../support/expect.ts';
import { ask, lastReply, openWire, type Wire } from '../../support/http.ts';
import { type GpdProcess, startProcess } from '../../support/process.ts';
import { createBundle } from '../../support/seal.ts';

const HEAD = `POST ${INGEST} HTTP/1.1\r\nHost: gpd.test\r\nContent-Type: application/json\r\n`;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Sends a little again and again for as long as the other side listens. */
async function trickle(wire: Wire, piece: string): Promise<void> {
  let open = true;
  void wire.closed.then(() => {
    open = false;
  });
  while (open) {
    wire.send(piece);
    await pause(100);
  }
}

describe.concurrent('slow senders', () => {
  const senders: readonly (readonly [name: string, first: string, piece?: string])[] = [
    ['half a header', `${HEAD}X-Half: `],
    ['a header line by line', HEAD, 'X-A: b\r\n'],
    ['half a body', `${HEAD}Content-Length: 100\r\n\r\n{"kid":`],
    ['a body letter by letter', `${HEAD}Content-Length: 1000\r\n\r\n`, ' '],
    ['a chunked body letter by letter', `${HEAD}Transfer-Encoding: chunked\r\n\r\n`, '1\r\n \r\n'],
    ['half a header of another route', 'GET /healthz HTTP/1.1\r\nHost: x\r\n'],
  ];

  it('are told 408 after 10 s and cut off, while others are served; who says nothing is not kept either', async () => {
    const gpd = await startProcess();
    const silent = await openWire(gpd.port);
    const waiting = senders.map(async ([name, first, piece]) => {
      const wire = await openWire(gpd.port);
      wire.send(first);
      if (piece !== undefined) void trickle(wire, piece);
      const { text, ms } = await wire.closed;
      return { name, reply: lastReply(text), ms };
    });
    const meanwhile = await post(gpd.url, createBundle(gpd.targets[0]!));
    expectCore(meanwhile, 'ok');
    for (const { name, reply, ms } of await Promise.all(waiting)) {
      expect({ name, status: reply.status }).toEqual({ name, status: 408 });
      expect(JSON.parse(reply.body)).toMatchObject({ error: 'request-timeout' });
      expect(reply.headers['connection']).toBe('close');
      expect(reply.headers['x-request-id']).toMatch(REQUEST_ID);
      expect(reply.headers).not.toHaveProperty('set-cookie');
      console.log(`${name}: cut off after ${ms.toFixed(0)} ms`);
    }
    console.log(`a silent connection: closed after ${(await silent.closed).ms.toFixed(0)} ms`);
    await gpd.stop();
  });
});

/** A bundle of which half has been sent. */
async function halfSent(gpd: GpdProcess): Promise<{ wire: Wire; rest: string }> {
  const body = JSON.stringify(createBundle(gpd.targets[0]!));
  const wire = await openWire(gpd.port);
  wire.send(`${HEAD}Content-Length: ${body.length}\r\n\r\n${body.slice(0, 500)}`);
  await pause(100);
  return { wire, rest: body.slice(500) };
}

async function expectEnd(gpd: GpdProcess): Promise<void> {
  const start = performance.now();
  expect(await gpd.exited).toEqual({ code: 0, signal: null });
  console.log(`drained in ${(performance.now() - start).toFixed(0)} ms`);
}

describe.concurrent('SIGTERM, and SIGINT', () => {
  it.each(['SIGTERM', 'SIGINT'])(
    '%s lets a request under way finish, tells that it is not ready, takes nobody new and ends with 0',
    async (signal) => {
      const gpd = await startProcess();
      const { wire, rest } = await halfSent(gpd);
      const ready = await openWire(gpd.port);
      ready.send('GET /readyz HTTP/1.1\r\nHost: gpd.test\r\n');
      const idle = await openWire(gpd.port);
      idle.send('GET /healthz HTTP/1.1\r\nHost: gpd.test\r\n\r\n');
      await idle.until(/"ok"/);

      process.kill(gpd.pid, signal);
      await vi.waitFor(() => expect(gpd.logs()).toContain('draining'), { timeout: 20_000, interval: 20 });
      await idle.closed;
      ready.send('\r\n');
      const notReady = lastReply((await ready.closed).text);
      expect(notReady.status).toBe(503);
      expect(notReady.headers['connection']).toBe('close');
      expect(JSON.parse(notReady.body)).toMatchObject({ status: 'not-ready', notReady: ['draining'] });
      await expect(ask(gpd.url, '/healthz')).rejects.toThrow(/ECONNREFUSED/);

      wire.send(rest);
      const reply = lastReply((await wire.closed).text);
      expect(reply.status).toBe(200);
      expect(reply.headers['connection']).toBe('close');
      expect(reply.headers['set-cookie']).toMatch(/^gp_session=/);
      await expectEnd(gpd);
      const { requestId } = JSON.parse(reply.body) as { requestId: string };
      const rows = await execute(gpd.dataDir, 'SELECT request_id FROM decisions');
      expect(rows).toEqual([{ request_id: requestId }]);
    },
  );

  // Guards against: what the kernel had taken and a busy server had not yet accepted was reset.
  it('answers the connections that wait to be accepted', async () => {
    const gpd = await startProcess();
    process.kill(gpd.pid, 'SIGSTOP');
    const wires = await Promise.all(Array.from({ length: 10 }, () => openWire(gpd.port)));
    for (const wire of wires) wire.send('GET /healthz HTTP/1.1\r\nHost: gpd.test\r\n\r\n');
    await pause(100);
    process.kill(gpd.pid, 'SIGTERM');
    process.kill(gpd.pid, 'SIGCONT');
    const replies = await Promise.all(wires.map(async ({ closed }) => lastReply((await closed).text).status));
    expect(replies).toEqual(Array(10).fill(200));
    await expectEnd(gpd);
  });

  it('does not wait for a sender that never finishes', async () => {
    const gpd = await startProcess();
    const { wire } = await halfSent(gpd);
    void trickle(wire, ' ');
    gpd.terminate();
    await expectEnd(gpd);
    await wire.closed;
  });

  it('in the middle of traffic loses no answer that was given', async () => {
    const gpd = await startProcess();
    const acme = gpd.targets[0]!;
    const requestIds: string[] = [];
    const sending = Array.from({ length: 200 }, async () => {
      const reply = await post(gpd.url, createBundle(acme)).catch(() => null);
      if (reply?.status === 200) requestIds.push(expectCore(reply, 'ok').requestId);
    });
    await vi.waitFor(() => expect(requestIds.length).toBeGreaterThan(5), { timeout: 10_000, interval: 1 });
    gpd.terminate();
    await Promise.all(sending);
    await expectEnd(gpd);
    const rows = await execute(gpd.dataDir, 'SELECT request_id FROM decisions');
    expect(new Set(rows.map((row) => row['request_id']))).toEqual(new Set(requestIds));
    expect(rows).toHaveLength(requestIds.length);
  });
});

it('GET /readyz is 503 with the cause while the database cannot be read, and ready again afterwards', async () => {
  const gpd = await startProcess();
  const statusOf = async (path: string): Promise<number> => (await ask(gpd.url, path)).status;
  await execute(gpd.dataDir, 'ALTER TABLE revisions RENAME TO hidden');
  await expect.poll(() => statusOf('/readyz')).toBe(503);
  expect((await ask(gpd.url, '/readyz')).json()).toMatchObject({
    status: 'not-ready',
    notReady: [expect.stringMatching(/database/)],
  });
  expect(await statusOf('/healthz')).toBe(200);
  await execute(gpd.dataDir, 'ALTER TABLE hidden RENAME TO revisions');
  await expect.poll(() => statusOf('/readyz')).toBe(200);
  await gpd.stop();
});
