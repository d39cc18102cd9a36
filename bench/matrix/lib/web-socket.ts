import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { Duplex } from 'node:stream';

/** RFC 6455, as much as the developer protocol takes: whole text messages, both ways. Node 20 has no client of its own. */

export interface Line {
  readonly send: (text: string) => void;
  readonly close: () => void;
}

const TEXT = 0x81;
const MASKED = 0x80;

function frame(text: string): Buffer {
  const payload = Buffer.from(text);
  const mask = randomBytes(4);
  const head = payload.length < 126 ? Buffer.of(TEXT, MASKED | payload.length) : Buffer.alloc(4);
  if (payload.length >= 126) {
    head.writeUInt16BE((TEXT << 8) | MASKED | 126, 0);
    head.writeUInt16BE(payload.length, 2);
  }
  return Buffer.concat([head, mask, payload.map((byte, i) => byte ^ (mask[i % 4] ?? 0))]);
}

/** The payload of the first whole frame and what comes after it. */
function unframe(bytes: Buffer): readonly [text: string, rest: Buffer] | null {
  if (bytes.length < 2) return null;
  const short = (bytes[1] ?? 0) & 0x7f;
  const head = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (bytes.length < head) return null;
  const length =
    short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
  if (bytes.length < head + length) return null;
  return [bytes.toString('utf8', head, head + length), bytes.subarray(head + length)];
}

export async function dialWebSocket(address: string, onText: (text: string) => void): Promise<Line> {
  const headers = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': randomBytes(16).toString('base64'),
  };
  const asked = request(address.replace(/^ws:/, 'http:'), { headers });
  asked.end();
  const [, socket, first] = (await once(asked, 'upgrade')) as [IncomingMessage, Duplex, Buffer];
  let rest = first;
  const take = (): void => {
    for (let next = unframe(rest); next; next = unframe(rest)) {
      rest = next[1];
      onText(next[0]);
    }
  };
  take();
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    take();
  });
  socket.on('error', () => {});
  return { send: (text) => socket.write(frame(text)), close: () => socket.destroy() };
}
