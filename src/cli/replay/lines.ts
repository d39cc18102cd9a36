import { createReadStream } from 'node:fs';
import { z } from 'zod';
import { tryOr } from '../../lib/errors.ts';
import { visitorClassSchema } from '../../schema/responses.ts';
import { io, misused } from '../io.ts';

const NEWLINE = 0x0a;
const RETURN = 0x0d;

function textOf(bytes: Buffer): string {
  const end = bytes.at(-1) === RETURN ? bytes.length - 1 : bytes.length;
  return bytes.toString('utf8', 0, end);
}

/**
 * The lines of NDJSON, ended by LF or CRLF, with the bytes read up to each line's end. The next chunk is asked for when
 * all lines of the last were taken: a reader that queues lines ahead keeps them alive past two scavenges, and the heap
 * then grows by what is already garbage.
 */
export async function* splitLines(
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<{ readonly text: string; readonly bytes: number }> {
  let parts: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const tail = chunk.subarray(start, end);
      const line = parts.length === 0 ? tail : Buffer.concat([...parts, tail]);
      parts = [];
      start = end + 1;
      bytes += line.length + 1;
      yield { text: textOf(line), bytes };
    }
    if (start < chunk.length) parts.push(chunk.subarray(start));
  }
  const rest = Buffer.concat(parts);
  if (rest.length > 0) yield { text: textOf(rest), bytes: bytes + rest.length };
}

/** One line of NDJSON: a bundle, or a bundle with its request's headers and what is expected of it. */

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
 * Header names in lower case, as `node:http` gives them. The body is the bundle as JSON text; whether it is one is for the
 * ingest to say.
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

/** Reads line by line: a file of any size needs only the memory of its longest line. */
export async function* readLines(path: string): AsyncGenerator<{ line: ReplayLine; bytes: number }> {
  let number = 0;
  for await (const { text, bytes } of splitLines(path === '-' ? io().stdin : createReadStream(path))) {
    number += 1;
    if (text.trim() !== '') yield { line: parseLine(text, number), bytes };
  }
}
