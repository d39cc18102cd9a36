import { openWire } from '../../support/http.ts';

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
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** @returns null unless the chunks are whole */
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

/** @returns null unless the text begins with a whole answer */
function readAnswer(text: string): { answer: RawAnswer; rest: string } | null {
  const end = text.indexOf('\r\n\r\n');
  if (!text.startsWith('HTTP/1.1 ') || end === -1) return null;
  const [line = '', ...lines] = text.slice(0, end).split('\r\n');
  const status = Number(line.split(' ')[1]);
  const headers = new Map(
    lines.map((each) => {
      const colon = each.indexOf(':');
      return [each.slice(0, colon).toLowerCase(), each.slice(colon + 1).trim()];
    }),
  );
  const after = text.slice(end + 4);
  const isBodiless = status === 204 || status === 304 || status === 100;
  const length = isBodiless ? 0 : Number(headers.get('content-length') ?? 0);
  const isChunked = !isBodiless && headers.get('transfer-encoding') === 'chunked';
  const read = isChunked ? readChunks(after) : { body: after.slice(0, length), rest: after.slice(length) };
  if (read === null || (!isChunked && after.length < length)) return null;
  return { answer: { status, headers, body: read.body }, rest: read.rest };
}

export function readAnswers(text: string): Pick<Exchanged, 'answers' | 'rest'> {
  const answers: RawAnswer[] = [];
  let rest = text;
  for (let read = readAnswer(rest); read !== null; read = readAnswer(rest)) {
    if (read.answer.status !== 100) answers.push(read.answer);
    rest = read.rest;
  }
  return { answers, rest };
}

/** A server that says nothing for so long hangs. */
const HANG_MS = 60_000;
/** One answer too many would come within this time. */
const QUIET_MS = 150;

/**
 * Sends the parts one after the other.
 * @param until `closes`: the server has to close; a number: so many answers are waited for
 */
export async function exchange(
  port: number,
  parts: readonly string[],
  until: 'closes' | number = 1,
): Promise<Exchanged> {
  const wire = await openWire(port, 'latin1');
  let closed = false;
  void wire.closed.then(() => {
    closed = true;
  });
  for (const [i, part] of parts.entries()) {
    if (i > 0) await pause(30);
    if (!closed) wire.send(Buffer.from(part, 'latin1'));
  }
  let heardAt = performance.now();
  let length = 0;
  const isDue = (): boolean => until === 'closes' || readAnswers(wire.received()).answers.length < until;
  while (!closed && performance.now() - heardAt < (isDue() ? HANG_MS : QUIET_MS)) {
    if (wire.received().length > length) heardAt = performance.now();
    ({ length } = wire.received());
    await pause(10);
  }
  const wasClosed = closed;
  wire.close();
  return { ...readAnswers(wire.received()), closed: wasClosed };
}
