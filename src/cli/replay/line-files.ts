import { createReadStream } from 'node:fs';
import { z } from 'zod';
import { tryOr } from '../../lib/errors.ts';
import { visitorClassSchema } from '../../schema/responses.ts';
import { io, misused } from '../io-service.ts';

/**
 * Reads the input of `gpd replay` and `gpd consent import` from a file or standard input. A line is a bundle,
 * or a bundle with headers and an expectation.
 */

const NEWLINE = 0x0a;
const RETURN = 0x0d;

function textOf(bytes: Buffer): string {
  const end = bytes.at(-1) === RETURN ? bytes.length - 1 : bytes.length;
  return bytes.toString('utf8', 0, end);
}

/**
 * Splits NDJSON at LF or CRLF; `bytes` counts the input up to the end of the line. It reads the next chunk
 * only after all lines of the last one were taken: queued lines would survive V8's scavenges and let the heap
 * grow.
 * @throws {CommandFailed} `usage` for a line of more than `maxBytes`, before the rest of it is read
 */
export async function* splitLines(
  chunks: AsyncIterable<Buffer>,
  maxBytes = Number.POSITIVE_INFINITY,
): AsyncGenerator<{ readonly text: string; readonly bytes: number }> {
  let parts: Buffer[] = [];
  let bytes = 0;
  let lines = 0;
  const checkLength = (size: number): void => {
    if (size > maxBytes) throw misused(`line ${lines + 1}: longer than ${maxBytes} bytes`);
  };
  let waiting = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const tail = chunk.subarray(start, end);
      checkLength(waiting + tail.length);
      const line = parts.length === 0 ? tail : Buffer.concat([...parts, tail]);
      parts = [];
      waiting = 0;
      lines += 1;
      start = end + 1;
      bytes += line.length + 1;
      yield { text: textOf(line), bytes };
    }
    if (start === chunk.length) continue;
    parts.push(chunk.subarray(start));
    waiting += chunk.length - start;
    checkLength(waiting);
  }
  const rest = Buffer.concat(parts);
  if (rest.length > 0) yield { text: textOf(rest), bytes: bytes + rest.length };
}

const wrappedSchema = z.strictObject({
  bundle: z.unknown(),
  headers: z.record(z.string(), z.string()).optional(),
  expect: z.strictObject({ reason: z.string().optional(), class: visitorClassSchema.optional() }).optional(),
});

function isWrapped(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, 'bundle');
}

export type ReplayLine = ReturnType<typeof parseLine>;

/**
 * Header names are lower-case, as in `node:http`. The body is JSON text that only the ingest judges: it may
 * be no bundle.
 * @throws {CommandFailed} `usage`
 */
function parseLine(text: string, number: number) {
  const value = tryOr(() => JSON.parse(text) as unknown, null);
  if (!isWrapped(value)) return { number, body: text, headers: {}, expect: {} };
  const parsed = wrappedSchema.safeParse(value);
  if (!parsed.success) {
    throw misused(
      `line ${number}: next to \`bundle\`, only \`headers\` (strings) and \`expect\` ({reason, class}) are allowed`,
    );
  }
  const { bundle, headers = {}, expect = {} } = parsed.data;
  const lower = Object.fromEntries(Object.entries(headers).map(([name, text]) => [name.toLowerCase(), text]));
  return { number, body: JSON.stringify(bundle), headers: lower, expect };
}

/** @param path a file of any size, or `-` for standard input; memory holds its longest line */
export async function* readLines(path: string): AsyncGenerator<{ line: ReplayLine; bytes: number }> {
  let number = 0;
  for await (const { text, bytes } of splitLines(path === '-' ? io().stdin : createReadStream(path))) {
    number += 1;
    if (text.trim() !== '') yield { line: parseLine(text, number), bytes };
  }
}
