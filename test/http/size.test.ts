import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectCore, expectError, INGEST, post, REQUEST_ID } from '../support/expect.ts';
import { ask, JSON_TYPE, lastReply, openWire, type RawReply } from '../support/http.ts';
import { browserHeaders } from '../support/samples.ts';
import { createBundle } from '../support/seal.ts';
import { type Gpd, type SealTarget, startGpd } from '../support/server.ts';

/** Bodies that are too large. gpd answers before it closes on unread bytes, because closing resets the connection. */

const LIMIT = 32_768;

let gpd: Gpd;
let acme: SealTarget;
beforeAll(async () => {
  gpd = await startGpd();
  acme = gpd.targets[0]!;
});
afterAll(() => gpd.stop());

/** A good bundle in a body of exactly `size` bytes; white space after a JSON value means nothing. */
function bodyOf(size: number): string {
  return JSON.stringify(createBundle(acme)).padEnd(size, ' ');
}

/** A bundle whose ciphertext itself fills the body, up to the few bytes that base64 cannot hit. */
function fullBundle(): string {
  const pad = (length: number): string =>
    JSON.stringify(createBundle(acme, { signals: { collector: '1', padding: 'x'.repeat(length) } }));
  const over = pad(20_000).length - LIMIT;
  return pad(20_000 - Math.ceil((over * 3) / 4) - 3).padEnd(LIMIT, ' ');
}

function headOf(path: string, lines: readonly string[]): string {
  const fixed = [`POST ${path} HTTP/1.1`, 'Host: gpd.test', 'Content-Type: application/json'];
  return `${[...fixed, ...lines].join('\r\n')}\r\n\r\n`;
}
const head = (...lines: readonly string[]): string => headOf(INGEST, lines);

function expectTooLarge(reply: RawReply): void {
  expect(reply.status).toBe(413);
  expect(JSON.parse(reply.body)).toMatchObject({ error: 'payload-too-large' });
  expect(reply.headers['connection']).toBe('close');
  expect(reply.headers['x-request-id']).toMatch(REQUEST_ID);
  expect(reply.headers).not.toHaveProperty('set-cookie');
}

describe('the size of a body', () => {
  it('32,768 bytes are accepted, 32,769 are not', async () => {
    expectCore(await post(gpd.url, bodyOf(LIMIT)), 'ok');
    expectCore(await post(gpd.url, fullBundle()), 'ok');
    expectError(await post(gpd.url, bodyOf(LIMIT + 1)), 'payload-too-large');
  });

  it('counts bytes, not characters', async () => {
    expectError(await post(gpd.url, 'ß'.repeat(LIMIT / 2)), 'malformed-sealed-bundle');
    expectError(await post(gpd.url, `${'ß'.repeat(LIMIT / 2)} `), 'payload-too-large');
  });

  it('holds for a body whose length nobody said', async () => {
    const chunked = (body: string) =>
      ask(gpd.url, INGEST, {
        method: 'POST',
        headers: { ...JSON_TYPE, ...browserHeaders() },
        body,
        chunked: true,
      });
    expectCore(await chunked(bodyOf(LIMIT)), 'ok');
    const reply = await chunked(bodyOf(LIMIT + 1));
    expectError(reply, 'payload-too-large');
    expect(reply.headers['connection']).toBe('close');
  });
});

describe('Expect: 100-continue', () => {
  it('is granted for a body that may come', async () => {
    const body = bodyOf(LIMIT);
    const wire = await openWire(gpd.port);
    wire.send(head(`Content-Length: ${LIMIT}`, 'Expect: 100-continue', 'Connection: close'));
    expect(await wire.until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 100 /);
    wire.send(body);
    expect(lastReply((await wire.closed).text).status).toBe(200);
  });

  it('is answered 413 for one that may not', async () => {
    const wire = await openWire(gpd.port);
    wire.send(head(`Content-Length: ${LIMIT + 1}`, 'Expect: 100-continue'));
    const { text } = await wire.closed;
    expect(text).not.toContain(' 100 ');
    expectTooLarge(lastReply(text));
  });
});

const MEGA = 1024 * 1024;

interface Sent {
  readonly text: string;
  readonly error: string | null;
  readonly bytes: number;
}

/** Sends all of `pieces` as fast as they are taken, and closes its own half at the end of what it hears. */
function send(pieces: Iterable<string | Buffer>): Promise<Sent> {
  return new Promise((resolve) => {
    const socket = connect(gpd.port, '127.0.0.1');
    let text = '';
    let error: string | null = null;
    let hasEnded = false;
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    socket.on('error', (thrown: NodeJS.ErrnoException) => {
      error ??= thrown.code ?? thrown.message;
    });
    socket.on('end', () => {
      hasEnded = true;
    });
    socket.on('close', () => resolve({ text, error, bytes: socket.bytesWritten }));
    const all = pieces[Symbol.iterator]();
    const writeMore = (): void => {
      while (!hasEnded && !socket.destroyed) {
        const { value, done } = all.next() as IteratorResult<string | Buffer>;
        if (done === true) return;
        if (!socket.write(value)) {
          socket.once('drain', writeMore);
          return;
        }
      }
    };
    socket.once('connect', writeMore);
  });
}

function* repeated(first: string, piece: Buffer | string, times: number): Generator<Buffer | string> {
  yield first;
  for (let i = 0; i < times; i += 1) yield piece;
}

const CHUNK = Buffer.alloc(MEGA, 'x');
const CHUNKED = `${MEGA.toString(16)}\r\n${'x'.repeat(MEGA)}\r\n`;

describe('413 reaches its sender', () => {
  it.each([
    ['ingest, 8 MB', INGEST, `Content-Length: ${8 * MEGA}`, CHUNK],
    ['ingest, 8 MB in chunks', INGEST, 'Transfer-Encoding: chunked', CHUNKED],
    ['a route of Express, 8 MB in chunks', '/me', 'Transfer-Encoding: chunked', CHUNKED],
  ])('%s: ten times of ten', async (_name, path, length, piece) => {
    const replies = [];
    for (let i = 0; i < 10; i += 1) replies.push(await send(repeated(headOf(path, [length]), piece, 8)));
    const statuses = replies.map(({ text }) => (text === '' ? 'nothing' : lastReply(text).status));
    expect(new Set(statuses)).toEqual(new Set([413]));
  });
});

describe('who does not stop', () => {
  it('is cut off after a second and some megabytes, in whichever way they send', async () => {
    const length = head('Content-Length: 5368709120');
    const endless = await send(repeated(length, CHUNK, 5120));
    expect(lastReply(endless.text).status).toBe(413);
    expect(endless.bytes).toBeLessThan(64 * MEGA);
  });

  it('and sends another request behind is not heard', async () => {
    const inside = `${head('Content-Length: 40000')}${'x'.repeat(40_000)}`;
    const behind = 'GET /healthz HTTP/1.1\r\nHost: gpd.test\r\n\r\n';
    const { text } = await send([inside, behind, behind]);
    expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(lastReply(text).status).toBe(413);
  });

  it('or is silent, is let go after a second', async () => {
    const { text, error } = await send([head('Content-Length: 5368709120')]);
    expect(lastReply(text).status).toBe(413);
    expect(error).toBeNull();
  });
});
