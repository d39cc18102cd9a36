import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Response } from 'express';
import { createReadWhole } from '../http/limiter.ts';
import { type ServedRoute, sending } from '../http/register.ts';
import { Refusal } from '../lib/errors.ts';
import { ROUTES } from '../schema/routes.ts';
import type { LogService } from './service.ts';

/** Serves a tenant's log as C2SP tlog-tiles, and offline proofs (contract section 7, The ledger). */
export interface LedgerDeps extends LogService {
  readonly isPublic: (kid: string) => boolean;
}

const TILE_SECONDS = 31_536_000;
const PARTIAL_SECONDS = 60;

const notFound = (): never => {
  throw new Refusal('not-found');
};

function sendText(response: Response, text: string | null): void {
  if (text === null) throw new Refusal('not-found');
  response.set({ 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' }).send(text);
}

async function sendVkey(deps: LedgerDeps, response: Response, kid: string): Promise<void> {
  const vkey = await deps.vkey(kid);
  sendText(response, vkey && `${vkey}\n`);
}

async function sendExport(deps: LedgerDeps, response: Response, kid: string): Promise<void> {
  response.set({ 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' });
  if (response.req.method === 'HEAD') {
    response.end();
    return;
  }
  await pipeline(Readable.from(deps.exportLines(kid)), response);
}

/**
 * A full tile never changes; a partial one is only useful until it is full. With an API key the answer must
 * not be shared, because its URL is the same for each tenant (RFC 9111 section 3.5).
 */
async function sendTile(
  deps: LedgerDeps,
  response: Response,
  kid: string,
  tilePath: { readonly level: string | null; readonly index: string | null; readonly isPublic: boolean },
): Promise<void> {
  const { level, index, isPublic } = tilePath;
  if (level === null || index === null) throw new Refusal('not-found');
  const tile = await deps.tile(kid, `tile/${level}/${index}`);
  if (!tile) throw new Refusal('not-found');
  const age = index.includes('.p/') ? PARTIAL_SECONDS : TILE_SECONDS;
  const caching = isPublic ? `public, max-age=${age}` : 'no-store';
  response.set({ 'content-type': 'application/octet-stream', 'cache-control': caching }).send(tile);
}

const EXPORT_RETRY_SECONDS = '10';

/**
 * An export reads the whole log and is open to anyone: one at a time per client.
 * @returns a function that sends the export or refuses.
 * @throws {Refusal} `rate-limited`
 */
function createOpenExport(deps: LedgerDeps) {
  const readWhole = createReadWhole(1);
  return (response: Response, kid: string, client: string): Promise<void> => {
    const details = [`one export at a time: /ledger/${kid}/tile/… has the same entries, and may be cached`];
    const refusal = { headers: { 'retry-after': EXPORT_RETRY_SECONDS }, details };
    const send = (): Promise<void> => sendExport(deps, response, kid);
    return readWhole(client, send, () => new Refusal('rate-limited', refusal));
  };
}

/** The tenant, if its log is public. @throws {Refusal} `not-found` for any other */
function requirePublicLog(deps: LedgerDeps, { kid }: { readonly kid: string | null }): string {
  if (kid === null || !deps.isPublic(kid)) throw new Refusal('not-found');
  return kid;
}

export function ledgerRoutes(deps: LedgerDeps): readonly ServedRoute[] {
  const sendOpenExport = createOpenExport(deps);
  return [
    sending(ROUTES.getConsentProof, async ({ caller, params: { seq } }, response) =>
      sendText(response, seq === null ? null : await deps.proof(caller.kid, seq)),
    ),
    sending(ROUTES.getCheckpoint, async ({ caller }, response) =>
      sendText(response, await deps.checkpoint(caller.kid)),
    ),
    sending(ROUTES.getVerifierKey, ({ caller }, response) => sendVkey(deps, response, caller.kid)),
    sending(ROUTES.exportLog, ({ caller }, response) => sendExport(deps, response, caller.kid)),
    sending(ROUTES.getTile, ({ caller, params }, response) =>
      sendTile(deps, response, caller.kid, { ...params, isPublic: false }),
    ),
    sending(ROUTES.getLogRest, notFound),
    sending(ROUTES.getPublicCheckpoint, async ({ params }, response) =>
      sendText(response, await deps.checkpoint(requirePublicLog(deps, params))),
    ),
    sending(ROUTES.getPublicVerifierKey, async ({ params }, response) =>
      sendVkey(deps, response, requirePublicLog(deps, params)),
    ),
    sending(ROUTES.exportPublicLog, async ({ params, client }, response) =>
      sendOpenExport(response, requirePublicLog(deps, params), client),
    ),
    sending(ROUTES.getPublicTile, async ({ params }, response) =>
      sendTile(deps, response, requirePublicLog(deps, params), { ...params, isPublic: true }),
    ),
    sending(ROUTES.getPublicLogRest, notFound),
  ];
}
