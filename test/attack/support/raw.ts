import { connect, type Socket } from 'node:net';

/** Bytes to a server and everything that comes back, read as strictly as a proxy would. */

export interface RawAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export interface Exchanged {
  /** 100 Continue is none. */
  readonly answers: readonly RawAnswer[];
  /** Bytes besides whole answers; '' unless something is broken. */
  readonly rest: string;
  readonly closed: boolean;
  readonly ms: number;
}

const latin1 = (bytes: string | Uint8Array): Uint8Array =>
  typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes;
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function readChunks(text: string): { body: string; rest: string } | null {
  let body = '';
  let at = 0;
  for (;;) {
    const line = text.indexOf('\r\n', at);
    const size = line === -1 ? Number.NaN : Number.parseInt(text.slice(at, line), 16);
    if (Number.isNaN(size) || text.length < line + 4 + size) return null;
    body += text.slice(line + 2, line + 2 + size);
    at = line + 4 + size;
    if (size === 0) return { body, rest: text.slice(at) };
  }
}

export function readAnswers(text: string): Pick<Exchanged, 'answers' | 'rest'> {
  const answers: RawAnswer[] = [];
  let rest = text;
  while (rest.startsWith('HTTP/1.1 ')) {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) break;
    const [line = '', ...lines] = rest.slice(0, end).split('\r\n');
    const status = Number(line.split(' ')[1]);
    const headers = new Map(
      lines.map((each) => {
        const colon = each.indexOf(':');
        return [each.slice(0, colon).toLowerCase(), each.slice(colon + 1).trim()];
      }),
    );
    const after = rest.slice(end + 4);
    if (status === 100) {
      rest = after;
      continue;
    }
    const bodiless = status === 204 || status === 304;
    const length = Number(headers.get('content-length') ?? 0);
    const chunked = headers.get('transfer-encoding') === 'chunked';
    const read = chunked && !bodiless ? readChunks(after) : null;
    if (chunked && !bodiless && !read) break;
    const size = bodiless ? 0 : length;
    if (!read && after.length < size) break;
    answers.push({ status, headers, body: read?.body ?? after.slice(0, size) });
    rest = read?.rest ?? after.slice(size);
  }
  return { answers, rest };
}

/** A server that says nothing for so long hangs. */
const HANG_MS = 60_000;

export interface ExchangeOptions {
  /** The server has to close: waited for. */
  readonly closes?: boolean;
  /** So many answers are waited for, and then a little for one too many. */
  readonly answers?: number;
  readonly quietMs?: number;
  readonly gapMs?: number;
}

export async function exchange(
  port: number,
  parts: readonly (string | Uint8Array)[],
  { closes = false, answers = 1, quietMs = 150, gapMs = 30 }: ExchangeOptions = {},
): Promise<Exchanged> {
  const startedAt = performance.now();
  const socket: Socket = connect({ port, host: '127.0.0.1' });
  let text = '';
  let closed = false;
  let heardAt = startedAt;
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
    heardAt = performance.now();
  });
  socket
    .on('error', () => {})
    .once('close', () => {
      closed = true;
    });
  for (const [i, part] of parts.entries()) {
    if (i > 0) await pause(gapMs);
    if (!closed) socket.write(latin1(part));
  }
  heardAt = performance.now();
  const isDue = (): boolean => closes || readAnswers(text).answers.length < answers;
  while (!closed && performance.now() - heardAt < (isDue() ? HANG_MS : quietMs)) await pause(10);
  const ms = performance.now() - startedAt;
  const wasClosed = closed;
  socket.destroy();
  return { ...readAnswers(text), closed: wasClosed, ms };
}
