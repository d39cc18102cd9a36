import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Response } from 'express';
import { type Dsar, dsarJson } from './service.ts';

/** A long trail is written while it is read. */
export async function sendDsar(response: Response, dsar: Dsar): Promise<void> {
  response
    .status(200)
    .set({ 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
  await pipeline(Readable.from(dsarJson(dsar)), response);
}
