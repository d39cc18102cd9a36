import type { IncomingHttpHeaders } from 'node:http';
import type { Response } from 'express';
import { type ConcurrencyLimit, charge } from '../http/limiter.ts';
import {
  type AuthorizeDeps,
  authorize,
  type Call,
  type Caller,
  declaresTooMuch,
  type Handlers,
  isBrowser,
  isPlainJson,
  parseBody,
  requireOwnPrincipal,
} from '../http/register.ts';
import {
  API_CORS,
  corsHeaders,
  errorReply,
  FOREVER,
  fullReply,
  jsonReply,
  type KnowsOrigin,
  preflightHeaders,
  SHORT,
  sendBuilt,
  unavailable,
  withHeaders,
} from '../http/reply.ts';
import { type HotHandler, type HotReply, type HotRequest, hasGpcHeader } from '../http/request.ts';
import { hmacSha256Text } from '../lib/crypto.ts';
import { Refusal, Unavailable } from '../lib/errors.ts';
import { languageSchema } from '../schema/banner.ts';
import { MAX_BODY_BYTES } from '../schema/bundle.ts';
import type { ConsentWrite, DecisionAnswer, WriteResponse } from '../schema/consent.ts';
import type { CONSENT_ROUTES } from '../schema/consent-routes.ts';
import { allowedMethods, ROUTES, type Routes } from '../schema/routes.ts';
import type { Embed } from './banner.ts';
import type { createConsentApi } from './create-consent.ts';
import type { WriteAction, WriteSource } from './plan-write.ts';
import { issueReceipt } from './receipts-service.ts';
import type { Check } from './service.ts';
import { browserPrincipalId } from './tenant.ts';
import { definePurposes, policiesOf, publishNextPolicy, purposesOf } from './terms-service.ts';

/** POST /v1/consent/can-process: one keyed read between a request and its answer. */

export interface ConsentLaneDeps extends AuthorizeDeps {
  readonly check: (kid: string, request: Check) => Promise<DecisionAnswer>;
  readonly admission: ConcurrencyLimit;
  readonly knowsOrigin: KnowsOrigin;
}

const { path, method, request: bodySchema } = ROUTES.check;
const METHOD = method.toUpperCase();
const ALLOW = allowedMethods(path).join(', ');

async function answer(deps: ConsentLaneDeps, request: HotRequest): Promise<HotReply> {
  const { headers } = request;
  if (request.method !== METHOD) throw new Refusal('method-not-allowed', { headers: { allow: ALLOW } });
  const closing = { headers: { connection: 'close' } };
  const caller = await authorize(deps, request, ROUTES.check);
  if (declaresTooMuch(headers['content-length'], MAX_BODY_BYTES))
    throw new Refusal('payload-too-large', closing);
  if (!isPlainJson(headers)) {
    throw new Refusal('unsupported-media-type', closing);
  }
  const body = await request.readBody(MAX_BODY_BYTES);
  if (!body) throw new Refusal('payload-too-large', closing);
  if (deps.admission.isFull()) return fullReply();
  const asked = parseBody(body, bodySchema);
  return jsonReply(200, await deps.admission.hold(deps.check(caller.kid, asked)));
}

function refused(thrown: unknown): HotReply {
  const error = thrown instanceof Unavailable ? unavailable(thrown) : thrown;
  if (error instanceof Refusal) return errorReply(error.code, error.headers, error.details);
  throw error;
}

export function makeConsentLane(deps: ConsentLaneDeps): HotHandler {
  return async (request) => {
    if (request.method === 'OPTIONS') {
      const headers = preflightHeaders(request.headers, deps.knowsOrigin, API_CORS);
      return { status: 204, headers, body: '' };
    }
    const reply = await answer(deps, request).catch(refused);
    return withHeaders(reply, corsHeaders(request.headers, deps.knowsOrigin));
  };
}

type ConsentRouteDeps = ReturnType<typeof createConsentApi>['routes'];

/** A publishable key writes only from a registered origin. */
function requireOrigin(deps: ConsentRouteDeps, caller: Caller, { origin }: IncomingHttpHeaders): void {
  if (!isBrowser(caller)) return;
  if (origin === undefined || !deps.tenantOf(caller.kid).origins.has(origin))
    throw new Refusal('origin-not-allowed');
}

/** … and only for a browser principal whose secret it shows. */
function requireBrowserPrincipal(caller: Caller, { principalId, principalSecret }: ConsentWrite): void {
  if (!isBrowser(caller)) return;
  const own = principalSecret === undefined ? null : browserPrincipalId(principalSecret);
  if (own === null || own !== principalId) throw new Refusal('not-your-principal');
}

function sourceOf(caller: Caller): WriteSource {
  if (caller.kind === 'session') return 'session';
  return isBrowser(caller) ? 'browser' : 'backend';
}

/** Web Bot Auth on the request itself; a signature that does not verify changes nothing. Its nonce is good for this body alone. */
async function grantSource(deps: ConsentRouteDeps, call: WriteCall): Promise<WriteSource> {
  const { caller, body, target, headers, https } = call;
  const { principalKey } = deps.tenantOf(caller.kid);
  // Keyed, as it names somebody.
  const bundle = hmacSha256Text(principalKey, `grant ${JSON.stringify(body)}`);
  const agent = await deps.botAuth({ method: 'POST', target, headers, https, bundle }, deps.clock());
  return agent === null ? sourceOf(caller) : `agent:${agent}`;
}

/** A browser that sends Sec-GPC asserts it where the page's script says nothing; the script's own value wins. */
function heedSignal(caller: Caller, headers: IncomingHttpHeaders, body: ConsentWrite): ConsentWrite {
  const byBrowser = sourceOf(caller) !== 'backend';
  return byBrowser && body.gpc === undefined && hasGpcHeader(headers) ? { ...body, gpc: true } : body;
}

/** The three writes differ in their path alone. */
type WriteCall = Pick<
  Call<Routes['grant']>,
  'caller' | 'client' | 'headers' | 'body' | 'named' | 'target' | 'https'
>;

/** Refusals are not counted, and saying no waits for no other visitor: it is never counted in what all of them share. */
async function countBrowserWrite(
  { limits, service, tenantOf }: ConsentRouteDeps,
  action: WriteAction,
  { caller, client, body }: WriteCall,
): Promise<void> {
  if (!isBrowser(caller) || action === 'withdraw') return;
  const known = await service.knows(tenantOf(caller.kid), body.principalId);
  if (!known) await charge(limits.newcomer, client);
  if (action === 'grant') await charge(limits.key, caller.key.hash);
}

/** 422 and 400 come before the question whose principal it is. */
async function write(deps: ConsentRouteDeps, action: WriteAction, call: WriteCall): Promise<WriteResponse> {
  const { caller, headers, body, named } = call;
  // The person's own word over a signal: an administrator's key does not say it (contract-2 section 13).
  if (body.overGpc === true && caller.kind === 'key' && caller.key.scope === 'operator')
    throw new Refusal('insufficient-scope');
  await deps.fresh.checkTerms(caller.kid, body);
  requireOwnPrincipal(caller, body.principalId);
  requireBrowserPrincipal(caller, body);
  await countBrowserWrite(deps, action, call);
  const { principalSecret: _secret, ...written } = body;
  return deps.service.write(deps.tenantOf(caller.kid), {
    action,
    body: heedSignal(caller, headers, written),
    source: action === 'grant' ? await grantSource(deps, call) : sourceOf(caller),
    caller: caller.kind === 'key' ? caller.key.id : `session ${caller.session.principal}`,
    idempotencyKey: named['idempotency-key'] ?? null,
  });
}

function writer(deps: ConsentRouteDeps, action: WriteAction) {
  return {
    admit({ caller, headers }: Pick<WriteCall, 'caller' | 'headers'>) {
      requireOrigin(deps, caller, headers);
      return (call: WriteCall) => write(deps, action, call);
    },
  };
}

async function receipt(deps: ConsentRouteDeps, { caller, params: { seq } }: Call<Routes['receipt']>) {
  const session = caller.kind === 'session' ? caller.session : null;
  const issued = seq === null ? null : await issueReceipt(deps, deps.tenantOf(caller.kid), seq, session);
  if (issued === 'not-yours') throw new Refusal('not-your-principal');
  if (!issued) throw new Refusal('not-found');
  return issued;
}

/** All but what the lane serves. */
type Served = Exclude<keyof typeof CONSENT_ROUTES, 'check'> | 'gpcSupport';

export function consentRoutes(deps: ConsentRouteDeps): Handlers<Served> {
  const { service, fresh, tenantOf } = deps;
  return {
    // Purposes and policy versions: any key reads them, an operator's writes them.
    purposes: ({ caller }) => purposesOf(deps, caller.kid),
    savePurposes: ({ caller, body }) =>
      definePurposes(deps, tenantOf(caller.kid), body.purposes, caller.key.id),
    policies: ({ caller }) => policiesOf(deps, caller.kid),
    publishPolicy: ({ caller, body }) => publishNextPolicy(deps, tenantOf(caller.kid), body, caller.key.id),
    gpcSupport: () => ({ gpc: true, lastUpdate: '2026-11-23' }),
    banner({ caller, query, headers }) {
      const language = languageSchema.safeParse(query['lang'] ?? 'en');
      if (!language.success) {
        throw new Refusal('invalid-request', { details: ['lang: two or three small letters, as in "de"'] });
      }
      const request = { language: language.data, gpc: hasGpcHeader(headers) };
      const tenant = tenantOf(caller.kid);
      deps.keyUse.noteVisit(tenant, 'all', ...(request.gpc ? (['gpc'] as const) : []));
      return deps.banner(tenant, request);
    },
    async checkBatch({ caller, body: { checks } }) {
      const decisions = await fresh.checkAll(caller.kid, checks);
      return { results: decisions.map((decision, i) => ({ id: checks[i]?.id ?? '', ...decision })) };
    },
    grant: writer(deps, 'grant'),
    deny: writer(deps, 'deny'),
    withdraw: writer(deps, 'withdraw'),
    state({ caller, body: { principalId } }) {
      requireOwnPrincipal(caller, principalId);
      return service.state(tenantOf(caller.kid), principalId);
    },
    history({ caller, body: { principalId, ...page } }) {
      requireOwnPrincipal(caller, principalId);
      return service.history(tenantOf(caller.kid), principalId, page);
    },
    receipt: (call) => receipt(deps, call),
    erasePrincipal: ({ caller }) => deps.eraseOwn(tenantOf(caller.kid), caller.session),
    session: ({ caller, body }) => service.openSession(tenantOf(caller.kid), body.principalId, caller.key.id),
  };
}

const SCRIPT = 'text/javascript';

type EmbedRoute = 'embedScript' | 'pinnedScript' | 'embedLanguage' | 'embedManifest' | 'embedTypes';

/** The banner's script and languages: the same for everyone. */
export function embedRoutes({ files, manifest }: Embed): Handlers<EmbedRoute> {
  const file = (name: string, type: string) => async (_call: unknown, response: Response) =>
    sendBuilt(response, await files(name), { type, cache: SHORT });
  return {
    embedScript: file('embed.js', SCRIPT),
    embedTypes: file('embed.d.ts', 'text/plain'),
    embedManifest(_call, response) {
      response.set('cache-control', 'no-cache');
      return manifest();
    },
    async pinnedScript({ params }, response) {
      const { version } = await manifest();
      // Other bytes would fail the page's integrity check: better a plain 404.
      if (params.version !== version) throw new Refusal('not-found');
      sendBuilt(response, await files('embed.js'), { type: SCRIPT, cache: FOREVER });
    },
    async embedLanguage({ params: { version: asked, language } }, response) {
      const { version, languages } = await manifest();
      if (language === null || !languages.includes(language)) throw new Refusal('not-found');
      // A script of another version still finds words, and falls back to its own English for what they lack.
      const cache = asked === version ? FOREVER : SHORT;
      sendBuilt(response, await files(`${language}.json`), { type: 'application/json', cache });
    },
  };
}
