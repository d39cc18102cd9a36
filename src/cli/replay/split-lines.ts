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
