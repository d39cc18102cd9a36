import { createPlaces } from '../http/limiter.ts';
import type { Reply } from '../http/reply.ts';
import { reply, type ServedRoute } from '../http/routes.ts';
import { Refusal } from '../lib/errors.ts';
import { ROUTES } from '../schema/routes.ts';
import type { LogService } from './service.ts';

/** Serves a tenant's log as C2SP tlog-tiles, and offline proofs (contract section 7, The ledger). */
export interface LedgerDeps extends LogService {
  readonly isPublic: (kid: string) => boolean;
}

const TILE_SECONDS = 31_536_000;
const PARTIAL_SECONDS = 60;

const NO_STORE = { 'cache-control': 'no-store' };

const notFound = (): never => {
  throw new Refusal('not-found');
};

function textReply(text: string | null): Reply {
  if (text === null) throw new Refusal('not-found');
  return { status: 200, headers: { 'content-type': 'text/plain; charset=utf-8', ...NO_STORE }, body: text };
}

async function vkeyReply(deps: LedgerDeps, kid: string): Promise<Reply> {
  const vkey = await deps.vkey(kid);
  return textReply(vkey && `${vkey}\n`);
}

function exportReply(deps: LedgerDeps, kid: string, onEnd = (): void => {}): Reply {
  const headers = { 'content-type': 'application/x-ndjson', ...NO_STORE };
  return { status: 200, headers, body: { parts: deps.exportLines(kid), onEnd } };
}

/**
 * A full tile never changes; a partial one is only useful until it is full. With an API key the answer must
 * not be shared, because its URL is the same for each tenant (RFC 9111 section 3.5).
 */
async function tileReply(
  deps: LedgerDeps,
  kid: string,
  tilePath: { readonly level: string | null; readonly index: string | null; readonly isPublic: boolean },
): Promise<Reply> {
  const { level, index, isPublic } = tilePath;
  if (level === null || index === null) throw new Refusal('not-found');
  const tile = await deps.tile(kid, `tile/${level}/${index}`);
  if (!tile) throw new Refusal('not-found');
  const age = index.includes('.p/') ? PARTIAL_SECONDS : TILE_SECONDS;
  const caching = isPublic ? `public, max-age=${age}` : 'no-store';
  return {
    status: 200,
    headers: { 'content-type': 'application/octet-stream', 'cache-control': caching },
    body: tile,
  };
}

const EXPORT_RETRY_SECONDS = '10';

/** An export reads the whole log and is open to anyone: one at a time per client. */
function createOpenExport(deps: LedgerDeps) {
  const takePlace = createPlaces(1);
  /** @throws {Refusal} `rate-limited` */
  return (kid: string, client: string): Reply => {
    const details = [`one export at a time: /ledger/${kid}/tile/… has the same entries, and may be cached`];
    const refusal = { headers: { 'retry-after': EXPORT_RETRY_SECONDS }, details };
    return exportReply(
      deps,
      kid,
      takePlace(client, () => new Refusal('rate-limited', refusal)),
    );
  };
}

/** The tenant, if its log is public. @throws {Refusal} `not-found` for any other */
function requirePublicLog(deps: LedgerDeps, { kid }: { readonly kid: string | null }): string {
  if (kid === null || !deps.isPublic(kid)) throw new Refusal('not-found');
  return kid;
}

export function ledgerRoutes(deps: LedgerDeps): readonly ServedRoute[] {
  const openExport = createOpenExport(deps);
  return [
    reply(ROUTES.getConsentProof, async ({ caller, params: { seq } }) =>
      textReply(seq === null ? null : await deps.proof(caller.kid, seq)),
    ),
    reply(ROUTES.getCheckpoint, async ({ caller }) => textReply(await deps.checkpoint(caller.kid))),
    reply(ROUTES.getVerifierKey, ({ caller }) => vkeyReply(deps, caller.kid)),
    reply(ROUTES.exportLog, ({ caller }) => exportReply(deps, caller.kid)),
    reply(ROUTES.getTile, ({ caller, params }) =>
      tileReply(deps, caller.kid, { ...params, isPublic: false }),
    ),
    reply(ROUTES.getLogRest, notFound),
    reply(ROUTES.getPublicCheckpoint, async ({ params }) =>
      textReply(await deps.checkpoint(requirePublicLog(deps, params))),
    ),
    reply(ROUTES.getPublicVerifierKey, ({ params }) => vkeyReply(deps, requirePublicLog(deps, params))),
    reply(ROUTES.exportPublicLog, ({ params, limitKey }) =>
      openExport(requirePublicLog(deps, params), limitKey),
    ),
    reply(ROUTES.getPublicTile, ({ params }) =>
      tileReply(deps, requirePublicLog(deps, params), { ...params, isPublic: true }),
    ),
    reply(ROUTES.getPublicLogRest, notFound),
  ];
}
