import type { IncomingHttpHeaders } from 'node:http';
import { authorize, type Caller, isBrowser, requireOwnPrincipal } from '../http/authorize.ts';
import { charge, createConcurrencyLimit } from '../http/limiter.ts';
import { corsHeaders, FIVE_MINUTES } from '../http/reply.ts';
import { hasGpcHeader, readHeader } from '../http/request.ts';
import { type Call, json, reply, type ServedRoute } from '../http/routes.ts';
import { hmacSha256Text } from '../lib/crypto.ts';
import { Refusal } from '../lib/errors.ts';
import { type ConsentWrite, idempotencyKeySchema } from '../schema/consent.ts';
import { ANYBODY } from '../schema/consent-routes.ts';
import { ROUTES } from '../schema/routes.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { bannerRoutes } from './banner-routes.ts';
import type { createConsentApi } from './create-consent-service.ts';
import { browserPrincipalId, type WriteAction, type WriteSource } from './plan-write.ts';
import { issueReceipt, listReceipts } from './receipts-service.ts';
import { definePurposes, policiesOf, publishNextPolicy, purposesOf } from './terms-service.ts';

/** The routes of the consent API (contract section 7). */

/**
 * Only the tenant's own backend gets the reference by which events name a principal (contract-2 section 20).
 */
const isSecret = (caller: Caller): boolean => caller.kind === 'key' && caller.key.scope === 'secret';

/** The person, in a browser or in a session, gets the signed state. */
const isPerson = (caller: Caller): boolean => caller.kind === 'session' || isBrowser(caller);

type ConsentRouteDeps = ReturnType<typeof createConsentApi>['routes'];

/** A publishable key writes, and reads a principal's state, only from a registered origin. */
function requireOrigin(deps: ConsentRouteDeps, caller: Caller, { origin }: IncomingHttpHeaders): void {
  if (!isBrowser(caller)) return;
  if (origin === undefined || !deps.tenantOf(caller.kid).origins.has(origin))
    throw new Refusal('origin-not-allowed');
}

/** A publishable key writes only for a browser principal whose secret it sends. */
function requireBrowserPrincipal(
  caller: Caller,
  { principalId, principalSecret }: Pick<ConsentWrite, 'principalId' | 'principalSecret'>,
): void {
  if (!isBrowser(caller)) return;
  const browserId = principalSecret === undefined ? null : browserPrincipalId(principalSecret);
  if (browserId === null || browserId !== principalId) throw new Refusal('not-your-principal');
}

function sourceOf(caller: Caller): WriteSource {
  if (caller.kind === 'session') return 'session';
  return isBrowser(caller) ? 'browser' : 'backend';
}

/** A write as it came in. The three kinds differ only in their paths. */
type WriteCall = Pick<
  Call<['session', 'secret'], never, never>,
  'caller' | 'limitKey' | 'headers' | 'target' | 'https'
>;

/**
 * Checks a Web Bot Auth signature of the request; an invalid one changes nothing. Its nonce is valid for this
 * body only.
 */
async function grantSource(
  deps: ConsentRouteDeps,
  call: WriteCall,
  body: ConsentWrite,
): Promise<WriteSource> {
  const { caller, target, headers, https } = call;
  // Most grants have no signature, and pay for no MAC of their body.
  if (headers['signature-input'] === undefined) return sourceOf(caller);
  const { principalKey } = deps.tenantOf(caller.kid);
  // Keyed, because the body names a person.
  const bundle = hmacSha256Text(principalKey, `grant ${JSON.stringify(body)}`);
  const { agent } = await deps.botAuth({ method: 'POST', target, headers, https, bundle }, deps.clock());
  return agent === null ? sourceOf(caller) : `agent:${agent}`;
}

/** The header Sec-GPC counts if the page's script sends no value. */
function heedSignal(caller: Caller, headers: IncomingHttpHeaders, body: ConsentWrite): ConsentWrite {
  const byBrowser = sourceOf(caller) !== 'backend';
  return byBrowser && body.gpc === undefined && hasGpcHeader(headers) ? { ...body, gpc: true } : body;
}

/**
 * Refused requests are not counted. A denial is never counted in the limit that all visitors share, so it
 * never waits for others.
 */
async function countBrowserWrite(
  { limits, service, tenantOf }: ConsentRouteDeps,
  action: WriteAction,
  { caller, limitKey }: WriteCall,
  body: ConsentWrite,
): Promise<void> {
  if (!isBrowser(caller) || action === 'withdraw') return;
  const isKnown = await service.knows(tenantOf(caller.kid), body.principalId);
  if (!isKnown) await charge(limits.newcomer, limitKey);
  if (action === 'grant') await charge(limits.key, caller.key.hash);
}

/**
 * The owner of an Idempotency-Key. All visitors share the page's API key, so there the owner is the browser's
 * principal, who has proven its secret.
 */
function retryOwner(caller: Caller, tenant: Tenant, principalId: string): string {
  if (caller.kind === 'session') return `session ${caller.session.principal}`;
  return caller.key.scope === 'publishable' ? `browser ${tenant.refOf(principalId)}` : caller.key.id;
}

/** 422 and 400 come before the check whose principal it is. */
async function write(
  deps: ConsentRouteDeps,
  action: WriteAction,
  call: WriteCall & { readonly readBody: () => Promise<ConsentWrite> },
) {
  const { caller, headers, readBody } = call;
  requireOrigin(deps, caller, headers);
  const body = await readBody();
  const idempotencyKey = readHeader(headers, 'idempotency-key', idempotencyKeySchema) ?? null;
  // Only the person may overrule a signal, not an administrator's key (contract-2 section 13).
  if (body.overGpc === true && caller.kind === 'key' && caller.key.scope === 'operator')
    throw new Refusal('insufficient-scope');
  await deps.fresh.checkTerms(caller.kid, body);
  requireOwnPrincipal(caller, body.principalId);
  requireBrowserPrincipal(caller, body);
  await countBrowserWrite(deps, action, call, body);
  const tenant = deps.tenantOf(caller.kid);
  const answer = await deps.service.write(tenant, {
    action,
    body: heedSignal(caller, headers, body),
    source: action === 'grant' ? await grantSource(deps, call, body) : sourceOf(caller),
    caller: retryOwner(caller, tenant, body.principalId),
    idempotencyKey,
  });
  const { principalId } = body;
  const state = isPerson(caller) && (await deps.states.signAfterWrite(tenant, principalId, answer.seq));
  return state === false ? answer : { ...answer, state };
}

const writeRoutes = (deps: ConsentRouteDeps): readonly ServedRoute[] => [
  json(ROUTES.grantConsent, (call) => write(deps, 'grant', call)),
  json(ROUTES.denyConsent, (call) => write(deps, 'deny', call)),
  json(ROUTES.withdrawConsent, (call) => write(deps, 'withdraw', call)),
];

/** A credential is optional there: it adds the name of its tenant. */
const STATE_KEY_READERS = { credential: ANYBODY, limit: 'consent-by-client' } as const;

/** Checks and reads, with a session of the principal or with a key. */
const readRoutes = (deps: ConsentRouteDeps): readonly ServedRoute[] => [
  json(
    ROUTES.checkConsent,
    async ({ caller, readBody }) => deps.check(caller.kid, await readBody(), isSecret(caller)),
    createConcurrencyLimit(),
  ),
  json(ROUTES.checkConsentBatch, async ({ caller, readBody }) => {
    const { checks } = await readBody();
    const decisions = await deps.fresh.checkAll(caller.kid, checks, isSecret(caller));
    return { results: decisions.map((decision, i) => ({ id: checks[i]?.id ?? '', ...decision })) };
  }),
  json(ROUTES.getConsentState, async ({ caller, headers, readBody }) => {
    requireOrigin(deps, caller, headers);
    const body = await readBody();
    const { principalId } = body;
    requireOwnPrincipal(caller, principalId);
    requireBrowserPrincipal(caller, body);
    const tenant = deps.tenantOf(caller.kid);
    if (isPerson(caller)) return deps.states.read(tenant, principalId, 'person');
    return deps.states.read(tenant, principalId, isSecret(caller) ? 'secret' : 'other');
  }),
  reply(ROUTES.listConsentReceipts, async ({ caller, headers, readBody }) => {
    requireOrigin(deps, caller, headers);
    const body = await readBody();
    requireOwnPrincipal(caller, body.principalId);
    requireBrowserPrincipal(caller, body);
    const receipts = await listReceipts(deps, deps.tenantOf(caller.kid), body.principalId);
    return deps.receiptReply(receipts, headers);
  }),
  json(ROUTES.refreshState, async ({ caller, readBody }) => {
    const { state, gpc } = await readBody();
    return deps.states.refresh(deps.tenantOf(caller.kid), state, gpc);
  }),
  json(ROUTES.getStateKeys, async (call, head) => {
    const isAnonymous = call.headers.authorization === undefined;
    const caller = isAnonymous ? null : await authorize(deps.authorization, call, STATE_KEY_READERS);
    head.headers['cache-control'] = isAnonymous ? FIVE_MINUTES : 'private, max-age=300';
    const cors = corsHeaders(call.headers, deps.knowsOrigin);
    Object.assign(head.headers, cors, { vary: 'Authorization, Origin' });
    return { keys: [deps.states.key], ...(caller && { tenant: caller.kid }) };
  }),
  json(ROUTES.listConsentHistory, async ({ caller, readBody }) => {
    const { principalId, ...page } = await readBody();
    requireOwnPrincipal(caller, principalId);
    return deps.service.history(deps.tenantOf(caller.kid), principalId, page);
  }),
  json(ROUTES.getConsentReceipt, async ({ caller, params: { seq } }) => {
    const session = caller.kind === 'session' ? caller.session : null;
    const issued = seq === null ? null : await issueReceipt(deps, deps.tenantOf(caller.kid), seq, session);
    if (issued === 'not-yours') throw new Refusal('not-your-principal');
    if (!issued) throw new Refusal('not-found');
    return issued;
  }),
];

/** Purposes and policy versions: every key may read them, an operator's key may write them. */
const termsRoutes = (deps: ConsentRouteDeps): readonly ServedRoute[] => [
  json(ROUTES.listPurposes, ({ caller }) => purposesOf(deps, caller.kid)),
  json(ROUTES.savePurposes, async ({ caller, readBody }) => {
    const { purposes, material } = await readBody();
    const changes = purposes.map((purpose) => ({ ...purpose, material: purpose.material ?? material }));
    return definePurposes(deps, deps.tenantOf(caller.kid), changes, caller.key.id);
  }),
  json(ROUTES.listPolicies, ({ caller }) => policiesOf(deps, caller.kid)),
  json(ROUTES.publishPolicy, async ({ caller, readBody }) => {
    const policy = await readBody();
    return publishNextPolicy(deps, deps.tenantOf(caller.kid), policy, caller.key.id);
  }),
  json(ROUTES.getGpcSupport, () => ({ gpc: true as const, lastUpdate: '2026-11-28' })),
];

export const consentRoutes = (deps: ConsentRouteDeps): readonly ServedRoute[] => [
  ...writeRoutes(deps),
  ...readRoutes(deps),
  ...termsRoutes(deps),
  ...bannerRoutes(deps),
  json(ROUTES.openSession, async ({ caller, readBody }) => {
    const { principalId } = await readBody();
    return deps.service.openSession(deps.tenantOf(caller.kid), principalId, caller.key.id);
  }),
  json(ROUTES.joinPrincipal, async ({ caller, readBody }, head) => {
    const { principalId, principalSecret } = await readBody();
    // A browser proves with its secret that it is this principal.
    if (browserPrincipalId(principalSecret) !== principalId) throw new Refusal('unauthenticated');
    const { isNew, ...joined } = await deps.service.join(
      deps.tenantOf(caller.kid),
      caller.session,
      principalId,
    );
    head.status = isNew ? 201 : 200;
    return joined;
  }),
  json(ROUTES.erasePrincipal, async ({ caller, readBody }) => {
    await readBody();
    return deps.eraseOwn(deps.tenantOf(caller.kid), caller.session);
  }),
];
