import { createPlaces } from '../../http/limiter.ts';
import type { Reply } from '../../http/reply.ts';
import { reply, type ServedRoute } from '../../http/routes.ts';
import type { Actor } from '../../lib/act.ts';
import { Refusal } from '../../lib/errors.ts';
import { ROUTES } from '../../schema/routes.ts';
import { BadEvidenceRequest, type EvidenceRequest, evidenceFileName, readEvidenceRequest } from './period.ts';

/** `GET /v1/evidence` (contract-2 section 23): the file for a key of an operator. */

interface EvidenceRouteDeps {
  readonly spool: (
    kid: string,
    request: EvidenceRequest,
    actor: Actor,
  ) => Promise<{
    readonly bytes: AsyncIterable<Uint8Array>;
    readonly size: number;
    readonly close: () => Promise<void>;
  }>;
  readonly actorOf: (kid: string, apiKey: string) => Actor;
}

/** @throws {Refusal} `invalid-request` that names the parameter */
function requestOf(query: Readonly<Record<string, unknown>>): EvidenceRequest {
  try {
    return readEvidenceRequest(query);
  } catch (error) {
    if (!(error instanceof BadEvidenceRequest)) throw error;
    throw new Refusal('invalid-request', { details: [`${error.field}: ${error.message}`] });
  }
}

const RETRY_SECONDS = '30';

export function evidenceRoutes({ spool, actorOf }: EvidenceRouteDeps): readonly ServedRoute[] {
  // A file reads the log several times.
  const takePlace = createPlaces(1);
  const refusal = (): Refusal =>
    new Refusal('rate-limited', {
      headers: { 'retry-after': RETRY_SECONDS },
      details: ['one file of evidence at a time'],
    });
  return [
    reply(ROUTES.getEvidence, async ({ caller, query }): Promise<Reply> => {
      const request = requestOf(query);
      const { kid, key } = caller;
      const leave = takePlace(kid, refusal);
      try {
        const file = await spool(kid, request, actorOf(kid, key.id));
        const onEnd = (): void => {
          leave();
          void file.close();
        };
        const headers = {
          'content-type': 'application/zip',
          'content-disposition': `attachment; filename="${evidenceFileName(kid, request)}"`,
          'content-length': String(file.size),
          'cache-control': 'no-store',
        };
        return { status: 200, headers, body: { parts: file.bytes, onEnd } };
      } catch (error) {
        leave();
        throw error;
      }
    }),
  ];
}
