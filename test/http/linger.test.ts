import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { execute } from '../support/database.ts';
import { INGEST } from '../support/expect.ts';
import { lastReply } from '../support/http.ts';
import { type Gpd, startGpd } from '../support/server.ts';

/**
 * gpd answers before it closes on unread bytes, because closing resets the connection and loses the answer.
 */

const MEGA = 1024 * 1024;

let gpd: Gpd;
beforeAll(async () => {
  gpd = await startGpd();
});
afterAll(() => gpd.stop());

const head = (path: string, ...lines: readonly string[]): string =>
  [`POST ${path} HTTP/1.1`, 'Host: gpd.test', 'Content-Type: application/json', ...lines, '', ''].join(
    '\r\n',
  );

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
    ['ingest, 8 MB', INGEST, [`Content-Length: ${8 * MEGA}`], CHUNK],
    ['ingest, 8 MB in chunks', INGEST, ['Transfer-Encoding: chunked'], CHUNKED],
    ['a route of Express, 8 MB in chunks', '/me', ['Transfer-Encoding: chunked'], CHUNKED],
  ])('%s: ten times of ten', async (_name, path, lines, piece) => {
    const replies = [];
    for (let i = 0; i < 10; i += 1) replies.push(await send(repeated(head(path, ...lines), piece, 8)));
    const statuses = replies.map(({ text }) => (text === '' ? 'nothing' : lastReply(text).status));
    expect(new Set(statuses)).toEqual(new Set([413]));
  });
});

describe('who does not stop', () => {
  it('is cut off after a second and some megabytes, in whichever way they send', async () => {
    const length = head(INGEST, 'Content-Length: 5368709120');
    const endless = await send(repeated(length, CHUNK, 5120));
    expect(lastReply(endless.text).status).toBe(413);
    expect(endless.bytes).toBeLessThan(64 * MEGA);
  });

  it('and sends another request behind is not heard', async () => {
    const inside = `${head(INGEST, 'Content-Length: 40000')}${'x'.repeat(40_000)}`;
    const behind = 'GET /healthz HTTP/1.1\r\nHost: gpd.test\r\n\r\n';
    const { text } = await send([inside, behind, behind]);
    expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(lastReply(text).status).toBe(413);
    expect(await execute(gpd.dataDir, 'SELECT count(*) AS n FROM decisions')).toEqual([{ n: 0 }]);
  });

  it('or is silent, is let go after a second', async () => {
    const { text, error } = await send([head(INGEST, 'Content-Length: 5368709120')]);
    expect(lastReply(text).status).toBe(413);
    expect(error).toBeNull();
  });
});
