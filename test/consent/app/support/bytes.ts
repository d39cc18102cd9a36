import { request } from 'node:http';

/** A GET whose answer is bytes. */
export function getBytes(
  base: string,
  path: string,
  headers: Record<string, string>,
): Promise<{ status: number; bytes: Buffer }> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    const pending = request({ hostname, port, path, headers, agent: false });
    pending.once('error', reject);
    pending.once('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('error', reject);
      response.once('end', () => resolve({ status: response.statusCode ?? 0, bytes: Buffer.concat(chunks) }));
    });
    pending.end();
  });
}
