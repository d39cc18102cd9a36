import type { IncomingHttpHeaders } from 'node:http';
import type { Response } from 'express';
import { FOREVER, SHORT, sendBuilt } from '../http/built-file.ts';
import { type Caller, isBrowser, requireOwnPrincipal } from '../http/caller.ts';
import { charge } from '../http/limiter.ts';
import { hasGpcHeader } from '../http/network.ts';
import type { Call, Handlers } from '../http/register.ts';
import { Refusal } from '../lib/errors.ts';
import { hmacSha256Text } from '../lib/hash.ts';
import { languageSchema } from '../schema/banner.ts';
import type { ConsentWrite, WriteResponse } from '../schema/consent.ts';
import type { CONSENT_ROUTES } from '../schema/consent-routes.ts';
import type { Routes } from '../schema/routes.ts';
import type { makeConsentApi } from './consent-make.ts';
import type { Embed } from './embed.ts';
import type { WriteAction, WriteSource } from './plan-write.ts';
import { browserPrincipalId } from './principal.ts';
import { issueReceipt } from './receipts-service.ts';
import { definePurposes, policiesOf, publishNextPolicy, purposesOf } from './terms-service.ts';

type ConsentRouteDeps = ReturnType<typeof makeConsentApi>['routes'];

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
