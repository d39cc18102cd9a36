import { jsonReply } from '../../src/http/reply.ts';
import { json, reply } from '../../src/http/routes.ts';
import { ROUTES } from '../../src/schema/routes.ts';

/** None of these lines may compile: `npm run check:types` fails as soon as one does. */
export const WRONG_HANDLERS = [
  // @ts-expect-error the schema says `status: 'ok'`
  json(ROUTES.getHealth, () => ({ status: 'fine' as const, version: '1' })),
  // @ts-expect-error a field of the answer is missing
  json(ROUTES.getHealth, () => ({ status: 'ok' as const })),
  // @ts-expect-error the answer of a promise is held to the schema as well
  json(ROUTES.openSession, async () => ({ token: 1, principalId: '', expiresAt: '' })),
  // @ts-expect-error a session has no API key
  json(ROUTES.erasePrincipal, ({ caller }) => caller.key.id as never),
  // @ts-expect-error the body has no such field
  json(ROUTES.checkConsentBatch, async ({ readBody }) => ({ results: (await readBody()).check })),
  // @ts-expect-error a parameter that does not fit is null
  reply(ROUTES.getConsentProof, ({ params }) => jsonReply(200, params.seq.toFixed())),
  // @ts-expect-error the row says that its handler sends the answer itself
  json(ROUTES.getOpenApi, () => ({})),
];
