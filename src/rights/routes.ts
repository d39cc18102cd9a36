import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Request, RequestHandler, Response, Router } from 'express';
import { exactRouter } from '../http/exact-router.ts';
import type { Limiter } from '../http/hot.ts';
import { readJson, sendJson } from '../http/json-route.ts';
import { onlyMethods } from '../http/methods.ts';
import { requestFacts } from '../http/server.ts';
import { Refusal } from '../lib/errors.ts';
import { emptyRequestSchema } from '../schema/consent.ts';
import {
  contestRequestSchema,
  type EraseTargetBody,
  eraseOwnRequestSchema,
  eraseTargetSchema,
  resolveRequestSchema,
} from '../schema/rights.ts';
import { type Claimant, requireTenant, staffRole } from './caller.ts';
import type { Reach } from './subject.ts';

/** The privacy-rights API (contract section 6): rate 429 → 401 → role 403 → body 400 → 404 → ownership 403 → state 409. */

export interface PrivacyDeps {
  readonly limiter: Limiter;
  readonly authenticate: (authorization: string | undefined) => Promise<Claimant>;
  readonly identify: (claimant: Claimant) => Promise<Reach>;
  readonly fileContest: (
    claimant: Claimant,
    reach: Reach,
    body: { readonly requestId: string; readonly statement?: string | undefined },
  ) => Promise<object>;
  readonly resolveContest: (
    claimant: Claimant,
    kid: string,
    role: 'reviewer' | 'dpo',
    ruling: {
      readonly contestId: string;
      readonly outcome: 'upheld' | 'overturned';
      readonly reason: string;
      readonly version: number | null;
    },
  ) => Promise<object>;
  readonly eraseOwn: (claimant: Claimant, reach: Reach, visitorId: string | undefined) => Promise<object>;
  readonly eraseFor: (
    by: { readonly kid: string; readonly role: 'dpo'; readonly ref: string },
    body: EraseTargetBody,
  ) => Promise<object>;
  readonly refOf: (kid: string, claimant: Claimant) => string;
  readonly exportOwn: (claimant: Claimant, reach: Reach) => Promise<AsyncIterable<string>>;
}

/** One bucket for /me and /privacy (contract section 8), before anything else is looked at. */
export function privacyLimit(limiter: Limiter): RequestHandler {
  return async (request, _response, next) => {
    const wait = await limiter(requestFacts(request).limitKey);
    if (wait > 0) throw new Refusal('rate-limited', { headers: { 'retry-after': String(wait) } });
    next();
  };
}

/** A subject, identified. @throws {Refusal} `refusal` without the role, then `subject-not-identified` */
async function requireSubject(
  deps: PrivacyDeps,
  request: Request,
  refusal: 'subject-only' | 'staff-export-elsewhere',
): Promise<{ readonly claimant: Claimant; readonly reach: Reach }> {
  const claimant = await deps.authenticate(request.headers.authorization);
  if (!claimant.roles.has('subject')) throw new Refusal(refusal);
  return { claimant, reach: await deps.identify(claimant) };
}

async function erase(deps: PrivacyDeps, request: Request, response: Response): Promise<void> {
  const claimant = await deps.authenticate(request.headers.authorization);
  const { roles } = claimant;
  if (!roles.has('subject') && !roles.has('dpo')) throw new Refusal('not-your-data');
  if (!roles.has('subject')) requireTenant(claimant);
  const own = roles.has('dpo') ? null : await deps.identify(claimant);
  const body: EraseTargetBody = await readJson(request, own ? eraseOwnRequestSchema : eraseTargetSchema);
  // With a target and the role dpo it is a dpo's erasure, else a subject's.
  if (roles.has('dpo') && Object.keys(body).length > 0) {
    const kid = requireTenant(claimant);
    sendJson(response, 200, await deps.eraseFor({ kid, role: 'dpo', ref: deps.refOf(kid, claimant) }, body));
    return;
  }
  if (!roles.has('subject')) throw new Refusal('not-your-data');
  const reach = own ?? (await deps.identify(claimant));
  sendJson(response, 200, await deps.eraseOwn(claimant, reach, body.visitorId));
}

export function privacyRoutes(deps: PrivacyDeps): Router {
  const router = exactRouter();
  router.use('/privacy', privacyLimit(deps.limiter));
  router
    .route('/privacy/contest')
    .post(async (request, response) => {
      const { claimant, reach } = await requireSubject(deps, request, 'subject-only');
      const body = await readJson(request, contestRequestSchema);
      sendJson(response, 202, await deps.fileContest(claimant, reach, body));
    })
    .all(onlyMethods('POST', 'OPTIONS'));
  router
    .route('/privacy/contest/resolve')
    .post(async (request, response) => {
      const claimant = await deps.authenticate(request.headers.authorization);
      const role = staffRole(claimant);
      if (role === null) throw new Refusal('reviewer-only');
      const kid = requireTenant(claimant);
      const { version = null, ...ruling } = await readJson(request, resolveRequestSchema);
      sendJson(response, 200, await deps.resolveContest(claimant, kid, role, { ...ruling, version }));
    })
    .all(onlyMethods('POST', 'OPTIONS'));
  router
    .route('/privacy/dsar')
    .post(async (request, response) => {
      const { claimant, reach } = await requireSubject(deps, request, 'staff-export-elsewhere');
      await readJson(request, emptyRequestSchema);
      const text = await deps.exportOwn(claimant, reach);
      response
        .status(200)
        .set({ 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
      await pipeline(Readable.from(text), response);
    })
    .all(onlyMethods('POST', 'OPTIONS'));
  router
    .route('/privacy/erase')
    .post((request, response) => erase(deps, request, response))
    .all(onlyMethods('POST', 'OPTIONS'));
  return router;
}
