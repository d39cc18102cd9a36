import { randomBytes } from 'node:crypto';
import {
  hashSessionToken,
  makeSessionToken,
  type PrincipalSession,
  SESSION_TTL_MS,
} from '../auth/session.ts';
import type { Database } from '../db/db.ts';
import { outboxContext, sessionContext } from '../keys/contexts.ts';
import { makeMasterKey } from '../keys/master-key.ts';
import { canonicalJson, type Json } from '../lib/canonical-json.ts';
import { type Clock, iso, isoTime } from '../lib/clock.ts';
import { Refusal, Unavailable } from '../lib/errors.ts';
import { hmacSha256 } from '../lib/hash.ts';
import type { ConsentWrite, WriteResponse } from '../schema/consent.ts';
import type { WebhookEvent } from '../schema/webhooks.ts';
import { type ConsentDecision, decideConsent } from './decide.ts';
import { planWrite, type WriteAction, type WriteSource } from './plan-write.ts';
import type { ConsentAppender, ConsentStateReader, Notification } from './ports.ts';
import { principalRef } from './principal.ts';
import { findSession, insertSession } from './session-store.ts';
import type { ConsentTenant } from './tenant.ts';
import { listHistory, listState } from './terms-store.ts';

/** The consent API's operations over one tenant, behind authentication (contract section 7). */

export interface Check {
  readonly principalId: string;
  readonly purpose: string;
  readonly minSeq?: number | undefined;
}

export interface DecisionAnswer {
  readonly allowed: boolean;
  readonly reason: string;
  readonly proof: { readonly seq: number; readonly hash: string };
  readonly policyVersion: number;
  readonly expiresAt: string | null;
}

export interface WriteRequest {
  readonly action: WriteAction;
  readonly body: ConsentWrite;
  readonly source: WriteSource;
  /** Who may use an Idempotency-Key again. */
  readonly caller: string;
  readonly idempotencyKey: string | null;
}

export interface ConsentServiceDeps {
  readonly database: Database;
  readonly reader: ConsentStateReader;
  readonly appender: ConsentAppender;
  readonly clock: Clock;
}

const MIN_SEQ_WAIT_MS = 250;
const MIN_SEQ_STEP_MS = 25;

function toAnswer(decision: ConsentDecision): DecisionAnswer {
  const { allowed, reason, proof, policyVersion } = decision;
  return { allowed, reason, proof, policyVersion, expiresAt: iso(decision.expiresAt) };
}

/** What webhooks are told of an event, under the tenant's key. */
export function notifications(tenant: ConsentTenant, event: WebhookEvent, data: object): Notification[] {
  const webhooks = tenant.webhooksFor(event);
  if (webhooks.length === 0) return [];
  const payload = Buffer.from(JSON.stringify(data));
  const sealed = makeMasterKey(tenant.principalWrap, randomBytes).wrap(payload, outboxContext(tenant.kid));
  return webhooks.map((webhook) => ({ webhook, event, sealed }));
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

export type ConsentService = ReturnType<typeof makeConsentService>;

export function makeConsentService(deps: ConsentServiceDeps) {
  const { database, reader, appender, clock } = deps;
  const refOf = (tenant: ConsentTenant, principalId: string): string =>
    principalRef(tenant.principalKey, principalId);

  function queryOf(tenant: ConsentTenant, { principalId, purpose }: Check) {
    return { kid: tenant.kid, principal: refOf(tenant, principalId), purpose };
  }

  async function check(tenant: ConsentTenant, request: Check): Promise<DecisionAnswer> {
    const query = queryOf(tenant, request);
    const { minSeq } = request;
    for (let waited = 0; ; waited += MIN_SEQ_STEP_MS) {
      const state = await reader.read(query);
      if (minSeq === undefined || state.head.seq >= minSeq) {
        return toAnswer(decideConsent(request.purpose, state, tenant.rules, clock()));
      }
      if (waited >= MIN_SEQ_WAIT_MS) throw new Unavailable('the log has not reached minSeq yet', 1);
      await sleep(MIN_SEQ_STEP_MS);
    }
  }

  async function checkAll<C extends Check>(
    tenant: ConsentTenant,
    checks: readonly C[],
  ): Promise<DecisionAnswer[]> {
    const states = await reader.readAll(checks.map((request) => queryOf(tenant, request)));
    const now = clock();
    return states.map((state, i) =>
      toAnswer(decideConsent(checks[i]?.purpose ?? '', state, tenant.rules, now)),
    );
  }

  function policyVersionOf(tenant: ConsentTenant, asked: number | undefined): number {
    const { currentVersion } = tenant.rules;
    if (asked === undefined) return currentVersion;
    const known = asked === currentVersion || tenant.policies.some((policy) => policy.version === asked);
    if (known) return asked;
    throw new Refusal('invalid-request', { details: ['policyVersion: no such policy was published'] });
  }

  /** What a write names has to exist. @throws {Refusal} */
  function checkTerms(tenant: ConsentTenant, body: ConsentWrite): void {
    const unknown = body.purposes.filter((purpose) => tenant.termsOf(purpose) === undefined);
    if (unknown.length > 0) throw new Refusal('unknown-purpose', { details: unknown });
    policyVersionOf(tenant, body.policyVersion);
  }

  async function write(tenant: ConsentTenant, request: WriteRequest): Promise<WriteResponse> {
    const { action, body, source } = request;
    checkTerms(tenant, body);
    const { principalId, purposes, gpc } = body;
    const command = {
      action,
      principalId,
      purposes,
      policyVersion: policyVersionOf(tenant, body.policyVersion),
      gpc,
      source,
    };
    const now = clock();
    const entries = planWrite(
      command,
      (purpose) => tenant.termsOf(purpose) ?? { gpc: 'opt-out', ttlDays: 1 },
      now,
    );
    // Keyed: a plain hash of a body that names somebody could be guessed.
    const asked = canonicalJson([action, JSON.parse(JSON.stringify(body)) as Json]);
    const bodyHash = hmacSha256(tenant.principalKey, asked).toString('base64url');
    const { idempotencyKey: key, caller } = request;
    const answer = await appender.append({
      kid: tenant.kid,
      since: tenant.since,
      wrapKey: tenant.principalWrap,
      principalId,
      principal: refOf(tenant, principalId),
      entries,
      gpc,
      isGrant: action === 'grant',
      now,
      notify: ({ purpose, choice, seq, hash }) =>
        notifications(tenant, `consent.${choice}`, { principalId, purpose, seq, hash }),
      idempotency: key === null ? null : { caller, key, bodyHash },
    });
    if (answer === 'conflict') throw new Refusal('idempotency-conflict');
    const last = answer.entries.at(-1);
    if (!last) throw new Error('a write appended nothing');
    return { entries: [...answer.entries], seq: last.seq, hash: last.hash };
  }

  async function state(tenant: ConsentTenant, principalId: string) {
    const rows = await listState(database, tenant.kid, refOf(tenant, principalId));
    const asked = new Map(rows.map((row) => [row.purpose, row]));
    const decisions = await checkAll(
      tenant,
      tenant.purposes.map(({ id }) => ({ principalId, purpose: id })),
    );
    return {
      principalId,
      purposes: tenant.purposes.map(({ id }, i) => {
        const row = asked.get(id);
        return { purpose: id, choice: row?.choice ?? null, at: iso(row?.at ?? null), ...decisions[i] };
      }),
    };
  }

  async function history(
    tenant: ConsentTenant,
    principalId: string,
    page: { cursor?: string | undefined; limit?: number | undefined },
  ) {
    const limit = page.limit ?? 50;
    const before = page.cursor === undefined ? null : Number(page.cursor);
    const events = await listHistory(database, tenant.kid, refOf(tenant, principalId), {
      before,
      limit: limit + 1,
    });
    const shown = events.slice(0, limit);
    return {
      principalId,
      events: shown.map(({ seq, purpose, choice, at, detail }) => ({
        seq,
        type: `consent.${choice}`,
        purpose,
        time: isoTime(at),
        ...detail,
      })),
      nextCursor: events.length > limit ? String(shown.at(-1)?.seq ?? '') : null,
    };
  }

  async function openSession(tenant: ConsentTenant, principalId: string) {
    const token = makeSessionToken(randomBytes);
    const hash = hashSessionToken(token);
    const expiresAt = clock() + SESSION_TTL_MS;
    const wrapper = makeMasterKey(tenant.principalWrap, randomBytes);
    const wrappedPrincipalId = wrapper.wrap(Buffer.from(principalId), sessionContext(tenant.kid, hash));
    const principal = refOf(tenant, principalId);
    const { kid, since } = tenant;
    await insertSession(database, { hash, kid, principal, wrappedPrincipalId, expiresAt }, since);
    return { token, principalId, expiresAt: isoTime(expiresAt) };
  }

  async function readSession(
    tenantOf: (kid: string) => ConsentTenant | undefined,
    token: string,
  ): Promise<PrincipalSession | null> {
    const hash = hashSessionToken(token);
    const stored = await findSession(database, hash, clock());
    const tenant = stored && tenantOf(stored.kid);
    if (!stored || !tenant) return null;
    const wrapper = makeMasterKey(tenant.principalWrap, randomBytes);
    const principalId = wrapper
      .unwrap(stored.wrappedPrincipalId, sessionContext(stored.kid, hash))
      .toString();
    const { kid, principal, expiresAt } = stored;
    return { kid, principal, principalId, expiresAt };
  }

  return { checkTerms, check, checkAll, write, state, history, openSession, readSession };
}
