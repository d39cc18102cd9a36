import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Response, Router } from 'express';
import { type AuthorizeDeps, authorize, type Scope } from '../http/caller.ts';
import { exactRouter } from '../http/exact-router.ts';
import { onlyMethods, open } from '../http/methods.ts';
import { requestFacts } from '../http/server.ts';
import { Refusal } from '../lib/errors.ts';

/** A tenant's log as C2SP tlog-tiles, and offline proofs (contract section 7, The ledger). */
export interface LedgerDeps extends AuthorizeDeps {
  readonly checkpoint: (kid: string) => Promise<string | null>;
  readonly vkey: (kid: string) => Promise<string | null>;
  readonly proof: (kid: string, seq: number) => Promise<string | null>;
  readonly tile: (kid: string, path: string) => Promise<Buffer | null>;
  readonly exportLines: (kid: string) => AsyncIterable<string>;
  readonly isPublic: (kid: string) => boolean;
}

const READERS: readonly Scope[] = ['read-only', 'secret', 'operator'];
const SEQ = /^(?:0|[1-9]\d{0,14})$/;
const TILE_SECONDS = 31_536_000;
const PARTIAL_SECONDS = 60;

function sendText(response: Response, text: string | null): void {
  if (text === null) throw new Refusal('not-found');
  response.set({ 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' }).send(text);
}

function sendTile(response: Response, tile: Buffer | null, path: string, isPublic: boolean): void {
  if (!tile) throw new Refusal('not-found');
  // A full tile never changes; a partial one is of use only until it is full. Behind a key nothing may be shared: the
  // address is the same for every tenant (RFC 9111 section 3.5).
  const age = path.includes('.p/') ? PARTIAL_SECONDS : TILE_SECONDS;
  const caching = isPublic ? `public, max-age=${age}` : 'no-store';
  response.set({ 'content-type': 'application/octet-stream', 'cache-control': caching }).send(tile);
}

async function sendExport(deps: LedgerDeps, response: Response, kid: string): Promise<void> {
  response.set({ 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' });
  if (response.req.method === 'HEAD') {
    response.end();
    return;
  }
  await pipeline(Readable.from(deps.exportLines(kid)), response);
}

interface Part {
  readonly kid: string;
  readonly part: string;
  readonly isPublic: boolean;
}

async function sendPart(deps: LedgerDeps, response: Response, { kid, part, isPublic }: Part): Promise<void> {
  if (part === 'checkpoint') sendText(response, await deps.checkpoint(kid));
  else if (part === 'vkey') {
    const vkey = await deps.vkey(kid);
    sendText(response, vkey && `${vkey}\n`);
  } else if (part === 'export') await sendExport(deps, response, kid);
  else if (part.startsWith('tile/')) sendTile(response, await deps.tile(kid, part), part, isPublic);
  else throw new Refusal('not-found');
}

export function ledgerRoutes(deps: LedgerDeps): Router {
  const router = exactRouter();
  router
    .route('/v1/consent/proofs/:seq')
    .get(async (request, response) => {
      const { kid } = await authorize(deps, requestFacts(request), READERS);
      const { seq } = request.params;
      if (!SEQ.test(seq)) throw new Refusal('not-found');
      sendText(response, await deps.proof(kid, Number(seq)));
    })
    .all(onlyMethods('GET', 'HEAD'));
  router
    .route('/v1/ledger/*part')
    .get(async (request, response) => {
      const { kid } = await authorize(deps, requestFacts(request), READERS);
      await sendPart(deps, response, { kid, part: request.params.part.join('/'), isPublic: false });
    })
    .all(onlyMethods('GET', 'HEAD'));
  router
    .route('/ledger/:kid/*part')
    .get(async (request, response) => {
      const { kid, part } = request.params;
      if (!deps.isPublic(kid)) throw new Refusal('not-found');
      response.set(open);
      await sendPart(deps, response, { kid, part: part.join('/'), isPublic: true });
    })
    .all(onlyMethods('GET', 'HEAD'));
  return router;
}
