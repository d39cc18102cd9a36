import type { Request, Router } from 'express';
import type { PrincipalSession } from '../auth/session.ts';
import {
  type AuthorizeDeps,
  authorize,
  type Caller,
  requireOwnPrincipal,
  type Scope,
} from '../http/caller.ts';
import { exactRouter } from '../http/exact-router.ts';
import { readJson, sendJson } from '../http/json-route.ts';
import { onlyMethods } from '../http/methods.ts';
import { hasGpcHeader } from '../http/network.ts';
import { requestFacts } from '../http/server.ts';
import { Refusal } from '../lib/errors.ts';
import {
  batchRequestSchema,
  type ConsentWrite,
  consentWriteSchema,
  emptyRequestSchema,
  historyRequestSchema,
  principalRequestSchema,
} from '../schema/consent.ts';

type WriteAction = 'grant' | 'deny' | 'withdraw';
type WriteSource = 'backend' | 'session' | 'browser';

export interface ConsentRouteDeps extends AuthorizeDeps {
  readonly checkAll: (
    kid: string,
    checks: readonly { readonly principalId: string; readonly purpose: string }[],
  ) => Promise<readonly object[]>;
  /** 422 and 400 come before the question whose principal it is. @throws {Refusal} */
  readonly checkTerms: (kid: string, body: ConsentWrite) => Promise<void>;
  readonly write: (
    kid: string,
    request: {
      readonly action: WriteAction;
      readonly body: ConsentWrite;
      readonly source: WriteSource;
      readonly caller: string;
      readonly idempotencyKey: string | null;
    },
  ) => Promise<object>;
  readonly state: (kid: string, principalId: string) => Promise<object>;
  readonly history: (
    kid: string,
    principalId: string,
    page: { cursor?: string | undefined; limit?: number | undefined },
  ) => Promise<object>;
  readonly openSession: (kid: string, principalId: string) => Promise<object>;
  readonly originsOf: (kid: string) => ReadonlySet<string>;
  readonly browserPrincipalId: (secret: string) => string | null;
  readonly receipt: (kid: string, seq: number, session: PrincipalSession | null) => Promise<object | null>;
  readonly erase: (session: PrincipalSession) => Promise<object>;
}

const READERS: readonly Scope[] = ['secret', 'read-only', 'operator'];
const WRITERS: readonly Scope[] = ['secret', 'operator', 'session', 'publishable'];
const OWN_READERS: readonly Scope[] = [...READERS, 'session'];

const SEQ = /^(?:0|[1-9]\d{0,14})$/;
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

function idempotencyKey(request: Request): string | null {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key === 'string' && IDEMPOTENCY_KEY.test(key)) return key;
  throw new Refusal('invalid-request', { details: ['Idempotency-Key: 1 to 255 visible ASCII characters'] });
}

/** A publishable key writes only from a registered origin. */
function requireOrigin(deps: ConsentRouteDeps, caller: Caller, request: Request): void {
  if (caller.kind !== 'key' || caller.key.scope !== 'publishable') return;
  const { origin } = request.headers;
  if (origin === undefined || !deps.originsOf(caller.kid).has(origin))
    throw new Refusal('origin-not-allowed');
}

/** … and only for a browser principal whose secret it shows. */
function requireBrowserPrincipal(deps: ConsentRouteDeps, caller: Caller, body: ConsentWrite): void {
  if (caller.kind !== 'key' || caller.key.scope !== 'publishable') return;
  const { principalSecret } = body;
  const own = principalSecret === undefined ? null : deps.browserPrincipalId(principalSecret);
  if (own === null || own !== body.principalId) throw new Refusal('not-your-principal');
}

function sourceOf(caller: Caller): WriteSource {
  if (caller.kind === 'session') return 'session';
  return caller.key.scope === 'publishable' ? 'browser' : 'backend';
}

/** A browser that sends Sec-GPC asserts it where the page's script says nothing; what the script says stands. */
function heedSignal(caller: Caller, request: Request, body: ConsentWrite): ConsentWrite {
  const byBrowser = sourceOf(caller) !== 'backend';
  return byBrowser && body.gpc === undefined && hasGpcHeader(request.headers) ? { ...body, gpc: true } : body;
}

export function consentRoutes(deps: ConsentRouteDeps): Router {
  const router = exactRouter();
  router
    .route('/v1/consent/can-process/batch')
    .post(async (request, response) => {
      const { kid } = await authorize(deps, requestFacts(request), READERS);
      const { checks } = await readJson(request, batchRequestSchema);
      const decisions = await deps.checkAll(kid, checks);
      sendJson(response, 200, {
        results: decisions.map((decision, i) => ({ id: checks[i]?.id, ...decision })),
      });
    })
    .all(onlyMethods('POST', 'OPTIONS'));

  for (const action of ['grant', 'deny', 'withdraw'] as const) {
    router
      .route(`/v1/consent/${action}`)
      .post(async (request, response) => {
        const caller = await authorize(deps, requestFacts(request), WRITERS);
        requireOrigin(deps, caller, request);
        const body = await readJson(request, consentWriteSchema);
        const key = idempotencyKey(request);
        await deps.checkTerms(caller.kid, body);
        requireOwnPrincipal(caller, body.principalId);
        requireBrowserPrincipal(deps, caller, body);
        const callerId = caller.kind === 'key' ? caller.key.id : `session ${caller.session.principal}`;
        const { principalSecret: _secret, ...written } = body;
        const answer = await deps.write(caller.kid, {
          action,
          body: heedSignal(caller, request, written),
          source: sourceOf(caller),
          caller: callerId,
          idempotencyKey: key,
        });
        sendJson(response, 201, answer);
      })
      .all(onlyMethods('POST', 'OPTIONS'));
  }

  router
    .route('/v1/consent/state')
    .post(async (request, response) => {
      const caller = await authorize(deps, requestFacts(request), OWN_READERS);
      const { principalId } = await readJson(request, principalRequestSchema);
      requireOwnPrincipal(caller, principalId);
      sendJson(response, 200, await deps.state(caller.kid, principalId));
    })
    .all(onlyMethods('POST', 'OPTIONS'));
  router
    .route('/v1/consent/history')
    .post(async (request, response) => {
      const caller = await authorize(deps, requestFacts(request), OWN_READERS);
      const { principalId, ...page } = await readJson(request, historyRequestSchema);
      requireOwnPrincipal(caller, principalId);
      sendJson(response, 200, await deps.history(caller.kid, principalId, page));
    })
    .all(onlyMethods('POST', 'OPTIONS'));
  router
    .route('/v1/consent/receipts/:seq')
    .get(async (request, response) => {
      const caller = await authorize(deps, requestFacts(request), ['secret', 'session']);
      const { seq } = request.params;
      const session = caller.kind === 'session' ? caller.session : null;
      const receipt = SEQ.test(seq) ? await deps.receipt(caller.kid, Number(seq), session) : null;
      if (!receipt) throw new Refusal('not-found');
      sendJson(response, 200, receipt);
    })
    .all(onlyMethods('GET', 'HEAD', 'OPTIONS'));
  router
    .route('/v1/principals/erase')
    .post(async (request, response) => {
      const caller = await authorize(deps, requestFacts(request), ['session']);
      await readJson(request, emptyRequestSchema);
      if (caller.kind !== 'session') throw new Refusal('insufficient-scope');
      sendJson(response, 200, await deps.erase(caller.session));
    })
    .all(onlyMethods('POST', 'OPTIONS'));
  router
    .route('/v1/sessions')
    .post(async (request, response) => {
      const { kid } = await authorize(deps, requestFacts(request), ['secret']);
      const { principalId } = await readJson(request, principalRequestSchema);
      sendJson(response, 201, await deps.openSession(kid, principalId));
    })
    .all(onlyMethods('POST', 'OPTIONS'));
  return router;
}
