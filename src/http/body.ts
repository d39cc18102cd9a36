import type { IncomingMessage } from 'node:http';

/** Nobody is there to be answered, and nothing is wrong here. */
class SenderLeft extends Error {
  override readonly name = 'SenderLeft';
}

/** The client disconnected before its answer, which is not a fault. */
export const hasLeft = (error: unknown): boolean =>
  error instanceof SenderLeft || (error as { code?: unknown } | null)?.code === 'ERR_STREAM_PREMATURE_CLOSE';

/**
 * Reads a body of at most `limit` bytes; null when there are more, and the rest is left unread (a parser that drains
 * first can be made to read gigabytes). Rejects with
 * SenderLeft when the sender disconnects in the middle.
 */
export function readBody(request: IncomingMessage, limit: number): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size <= limit) {
        chunks.push(chunk);
        return;
      }
      request.off('data', onData);
      request.pause();
      resolve(null);
    };
    request.on('data', onData);
    request.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)));
    request.on('close', () => {
      if (!request.readableEnded) reject(new SenderLeft('the sender disconnected'));
    });
    // A sender that disconnects: `close` follows, and says so.
    request.on('error', () => {});
  });
}
