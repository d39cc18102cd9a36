import type { Handler, Handlers } from '../../src/http/register.ts';
import type { Routes } from '../../src/schema/routes.ts';

/** What must not compile: `npm run check:types` fails as soon as one of these lines does. */
export const WRONG = {
  // @ts-expect-error the schema says `status: 'ok'`
  answer: (() => ({ status: 'fine', version: '1' })) satisfies Handler<Routes['health']>,
  // @ts-expect-error a field of the answer is missing
  field: (() => ({ status: 'ok' })) satisfies Handler<Routes['health']>,
  // @ts-expect-error the answer of a promise is held to the schema as well
  promised: (async () => ({ token: 1, principalId: '', expiresAt: '' })) satisfies Handler<Routes['session']>,
  staged: {
    // @ts-expect-error and the answer behind what `admit` lets through
    admit: () => () => ({ contestId: '' }),
  } satisfies Handler<Routes['contest']>,
  // @ts-expect-error a session has no API key
  caller: (({ caller }) => caller.key.id as never) satisfies Handler<Routes['erasePrincipal']>,
  // @ts-expect-error the body has no such field
  body: (({ body }) => ({ results: body.check })) satisfies Handler<Routes['checkBatch']>,
  // @ts-expect-error a parameter that does not fit is null
  params: (({ params }, response) => response.send(params.seq.toFixed())) satisfies Handler<Routes['proof']>,
} as const;

// @ts-expect-error one row of the two has no handler
export const tooFew: Handlers<'health' | 'ready'> = { health: () => ({ status: 'ok', version: '1' }) };
