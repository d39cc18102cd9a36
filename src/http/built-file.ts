import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Response } from 'express';
import { Refusal } from '../lib/errors.ts';
import { sha256Text } from '../lib/hash.ts';

/** A file that the build made for browsers, and the same compressed: the level that costs most is paid once. */
type BuiltFile = Awaited<ReturnType<typeof read>>;

export const SHORT = 'public, max-age=300';
export const FOREVER = 'public, max-age=31536000, immutable';

const compress = promisify(gzip);

async function read(url: URL) {
  const body = await readFile(url).catch(() => {
    throw new Refusal('not-found', { details: ['The browser files are not built: run `npm run build`.'] });
  });
  const gzipped = (await compress(body, { level: 9 })) as Buffer;
  return { body, gzipped, etag: sha256Text(body) };
}

/** Files of one directory, each read once, on first use. The caller knows which names there are. */
export function builtFiles(directory: URL) {
  const cache = new Map<string, BuiltFile>();
  return async (name: string): Promise<BuiltFile> => {
    const cached = cache.get(name);
    if (cached) return cached;
    const file = await read(new URL(name, directory));
    cache.set(name, file);
    return file;
  };
}

export function sendBuilt(
  response: Response,
  file: BuiltFile,
  { type, cache }: { readonly type: string; readonly cache: string },
): void {
  const zipped = response.req.acceptsEncodings('gzip', 'identity') === 'gzip';
  response.set({
    'content-type': `${type}; charset=utf-8`,
    'cache-control': cache,
    vary: 'Accept-Encoding',
    // A strong tag is of one representation (RFC 9110, 8.8.3).
    etag: `"${file.etag}${zipped ? '-gzip' : ''}"`,
    ...(zipped ? { 'content-encoding': 'gzip' } : {}),
  });
  response.send(zipped ? file.gzipped : file.body);
}
