import { setTimeout as sleep } from 'node:timers/promises';
import type { z } from 'zod';
import { rightsRef } from '../audit/audit-store.ts';
import type { PrincipalSession } from '../auth/credentials.ts';
import { isoTime } from '../lib/clock.ts';
import { hmacSha256Text } from '../lib/crypto.ts';
import { Refusal, Unavailable } from '../lib/errors.ts';
import { canonicalJson, type Json } from '../lib/json.ts';
import { readEntries } from '../log/entries-store.ts';
import { parseStored } from '../log/fold.ts';
import { webhookRows } from '../notify/notify-service.ts';
import type {
  ConsentWrite,
  canProcessRequestSchema,
  DecisionAnswer,
  HistoryResponse,
  historyRequestSchema,
  WriteResponse,
} from '../schema/consent.ts';
import type { Tenant } from '../tenants/tenant.ts';
import type { ConsentAppender } from './append-store.ts';
import { type ConsentDecision, decideConsent } from './decide.ts';
import { type LastChoices, loadLastChoices, refuseRecord } from './import-store.ts';
import { joinedRefs, joinPrincipals } from './join-store.ts';
import { listHistory } from './openings-store.ts';
import {
  type AppendRequest,
  type ImportedRecord,
  planWrite,
  type WriteAction,
  type WriteSource,
} from './plan-write.ts';
import { openSession, readSession, type SessionParts } from './sessions-store.ts';
import { requireTerms, toAnswer } from './state-service.ts';
import { type ConsentStateReader, knowsPrincipal, type StateQuery } from './state-store.ts';

/** The consent API's operations over one tenant, behind authentication (contract section 7). */

/**
 * All that can be done with the consent of one tenant's principals. An act that reads the terms of a purpose
 * throws `ConsentStateInvalid` where they do not carry their MAC, and one that reads the database
 * `Unavailable`.
 */
export interface ConsentService {
  /**
   * Decides whether a purpose may be processed now.
   * @param isSecret the caller has a secret key, and gets the principal's reference
   * @throws {Unavailable} when the log does not reach `minSeq` soon
   */
  check(tenant: Tenant, request: ConsentCheck, isSecret?: boolean): Promise<DecisionAnswer>;
  /** Decides all of them from one snapshot, in the order of the checks. */
  checkAll(tenant: Tenant, checks: readonly ConsentCheck[], isSecret?: boolean): Promise<DecisionAnswer[]>;
  /** Decides several checks from one snapshot, with additional fields for gpd's own use. */
  decideAll(tenant: Tenant, checks: readonly ConsentCheck[]): Promise<ConsentDecision[]>;
  /**
   * Requires that the purposes and the version in a write exist.
   * @throws {Refusal} `unknown-purpose`, `invalid-request`
   */
  checkTerms(tenant: Tenant, body: ConsentWrite): void;
  /**
   * Requires that the definitions in a write that are not the present ones are in the log.
   * @throws {Refusal} `invalid-request`
   */
  checkDefinitions(tenant: Tenant, body: ConsentWrite): Promise<void>;
  /**
   * Appends a grant, denial or withdrawal to the log.
   * @throws {Refusal} `unknown-purpose`, `invalid-request`, `idempotency-conflict`, `erased`
   * @throws {TenantGone}
   */
  write(tenant: Tenant, request: WriteRequest): Promise<WriteResponse>;
  /** Appends a choice that another system recorded. @throws {Refusal} `unknown-purpose`, `invalid-request` */
  importRecord(tenant: Tenant, record: ConsentRecord): Promise<ImportOutcome>;
  /** Says what an import would do; `last` is kept from one call of it to the next. */
  previewImport(
    tenant: Tenant,
    records: readonly ConsentRecord[],
    last: LastChoices,
  ): Promise<ImportOutcome[]>;
  /** True when the principal ever made a choice. */
  knows(tenant: Tenant, principalId: string): Promise<boolean>;
  /** Shows a page of the principal's choices, the newest first. */
  history(tenant: Tenant, principalId: string, page: HistoryPage): Promise<HistoryResponse>;
  /**
   * Joins a browser with the account of the session; from then on each answers for both.
   * @throws {Refusal} `claimed-by-another`; `invalid-request` for the session's own principal and for the
   * thousandth browser
   */
  join(
    tenant: Tenant,
    session: Pick<PrincipalSession, 'principal' | 'principalId'>,
    browserId: string,
  ): Promise<{
    readonly principalId: string;
    readonly joined: string;
    readonly joinedAt: string;
    readonly isNew: boolean;
  }>;
  /** Opens a session of a principal. @param keyId the API key that opens it, and ends it */
  openSession(tenant: Tenant, principalId: string, keyId: string): ReturnType<typeof openSession>;
  /** Null for a session that is unknown, over, or of a tenant that is gone. */
  readSession(tenantOf: (kid: string) => Tenant | undefined, token: string): Promise<PrincipalSession | null>;
}

export type ConsentCheck = z.infer<typeof canProcessRequestSchema>;

export interface WriteRequest {
  readonly action: WriteAction;
  readonly body: ConsentWrite;
  readonly source: WriteSource;
  /** The caller to whom an Idempotency-Key belongs. */
  readonly caller: string;
  readonly idempotencyKey: string | null;
}

type HistoryPage = Omit<z.infer<typeof historyRequestSchema>, 'principalId'>;

/** The parts of the consent room. */
interface Deps extends SessionParts {
  readonly reader: ConsentStateReader;
  readonly appender: ConsentAppender;
}

const MIN_SEQ_WAIT_MS = 250;
const MIN_SEQ_STEP_MS = 25;
const HISTORY_PAGE = 50;

function queryOf(tenant: Tenant, { principalId, purpose }: ConsentCheck): StateQuery {
  return { kid: tenant.kid, principal: tenant.refOf(principalId), purpose, mac: tenant.stateMac };
}

async function check({ reader, clock }: Deps, tenant: Tenant, request: ConsentCheck, isSecret: boolean) {
  requireTerms(tenant);
  const query = queryOf(tenant, request);
  const { minSeq } = request;
  for (let waited = 0; ; waited += MIN_SEQ_STEP_MS) {
    const state = await reader.read(query);
    if (minSeq === undefined || state.head.seq >= minSeq) {
      const decision = decideConsent(request.purpose, state, tenant.rules, clock());
      return toAnswer(decision, isSecret ? query.principal : undefined);
    }
    if (waited >= MIN_SEQ_WAIT_MS) throw new Unavailable('the log has not reached minSeq yet', 1);
    await sleep(MIN_SEQ_STEP_MS);
  }
}

async function decideAll({ reader, clock }: Deps, tenant: Tenant, checks: readonly ConsentCheck[]) {
  requireTerms(tenant);
  const states = await reader.readAll(checks.map((request) => queryOf(tenant, request)));
  const now = clock();
  return states.map((state, i) => decideConsent(checks[i]?.purpose ?? '', state, tenant.rules, now));
}

async function checkAll(deps: Deps, tenant: Tenant, checks: readonly ConsentCheck[], isSecret: boolean) {
  const decisions = await decideAll(deps, tenant, checks);
  return decisions.map((decision, i) =>
    toAnswer(decision, isSecret ? tenant.refOf(checks[i]?.principalId ?? '') : undefined),
  );
}

const knows = ({ database }: Deps, tenant: Tenant, principalId: string) =>
  knowsPrincipal(database, tenant.kid, tenant.refOf(principalId));

function policyVersionOf(tenant: Tenant, requestedVersion: number | undefined): number {
  const { currentVersion } = tenant.rules;
  if (requestedVersion === undefined) return currentVersion;
  const isPublished =
    requestedVersion === currentVersion ||
    tenant.policies.some((policy) => policy.version === requestedVersion);
  if (isPublished) return requestedVersion;
  throw new Refusal('invalid-request', { details: ['policyVersion: no such policy was published'] });
}

function checkTerms(tenant: Tenant, body: ConsentWrite): void {
  const unknown = body.purposes.filter((purpose) => tenant.termsOf(purpose) === undefined);
  if (body.overGpc === true) unknown.push(...body.purposes.filter((id) => tenant.termsOf(id)?.gpc !== 'ask'));
  if (unknown.length > 0) throw new Refusal('unknown-purpose', { details: unknown });
  policyVersionOf(tenant, body.policyVersion);
  for (const [purpose, seq] of Object.entries(body.definitions ?? {}))
    if (!body.purposes.includes(purpose) || seq > (tenant.termsOf(purpose)?.definition ?? -1))
      throw noSuchDefinition(purpose, seq);
}

const noSuchDefinition = (purpose: string, seq: number): Refusal =>
  new Refusal('invalid-request', { details: [`definitions.${purpose}: entry ${seq} does not define it`] });

async function checkDefinitions({ database }: Deps, tenant: Tenant, body: ConsentWrite): Promise<void> {
  for (const [purpose, seq] of Object.entries(body.definitions ?? {})) {
    if (seq === tenant.termsOf(purpose)?.definition) continue;
    const [stored] = await readEntries(database, tenant.kid, seq, 1);
    const entry = stored?.seq === seq ? parseStored(stored.entry) : {};
    if (entry.type !== 'purpose.defined' || entry.purpose !== purpose) throw noSuchDefinition(purpose, seq);
  }
}

interface Choice extends Pick<WriteRequest, 'action' | 'body' | 'source'> {
  readonly imported?: ImportedRecord | undefined;
  readonly idempotency: AppendRequest['idempotency'];
}

/**
 * The caller has checked the terms. The append is submitted before any await, so that choices are appended in
 * their order.
 */
function append({ appender, clock }: Deps, tenant: Tenant, choice: Choice) {
  const { action, body, source, imported, idempotency } = choice;
  // The lifetime of a grant is one of the terms; a refusal needs no terms, and is always written.
  if (action === 'grant') requireTerms(tenant);
  checkTerms(tenant, body);
  const { principalId, purposes, gpc, overGpc, definitions } = body;
  const policyVersion = policyVersionOf(tenant, body.policyVersion);
  const now = clock();
  const principal = tenant.refOf(principalId);
  const entries = planWrite(
    { action, purposes, policyVersion, gpc, overGpc, source, imported, definitions },
    (purpose) => tenant.termsOf(purpose) ?? { gpc: 'opt-out', ttlDays: 1, definition: null },
    now,
  );
  return appender.append({
    kid: tenant.kid,
    since: tenant.since,
    wrapKey: tenant.principalWrap,
    stateMac: tenant.stateMac,
    principalId,
    principal,
    entries,
    gpc,
    isGrant: action === 'grant',
    imported,
    now,
    // An imported record sends no webhook: it happened elsewhere, not now.
    notify: ({ purpose, choice, seq, hash }) =>
      imported ? [] : webhookRows(tenant, `consent.${choice}`, { principalId, purpose, seq, hash }),
    idempotency,
  });
}

/** Keyed, because a plain hash of a body that names a person could be guessed. */
function hashWrite(tenant: Tenant, action: WriteAction, body: ConsentWrite): string {
  const hashed = JSON.parse(JSON.stringify({ ...body, principalSecret: undefined })) as Json;
  return hmacSha256Text(tenant.principalKey, canonicalJson([action, hashed]));
}

async function write(
  deps: Deps,
  tenant: Tenant,
  { action, body, source, idempotencyKey: key, caller }: WriteRequest,
): Promise<WriteResponse> {
  const idempotency = key === null ? null : { caller, key, bodyHash: hashWrite(tenant, action, body) };
  const answer = await append(deps, tenant, { action, body, source, idempotency });
  if (answer === 'conflict') throw new Refusal('idempotency-conflict');
  if (answer === 'erased') throw new Refusal('erased');
  const lastEntry = answer === 'outdated' ? undefined : answer.entries.at(-1);
  if (answer === 'outdated' || !lastEntry) throw new Error('a write appended nothing');
  return { entries: answer.entries, seq: lastEntry.seq, hash: lastEntry.hash };
}

/** A choice that another system recorded. */
export interface ConsentRecord extends ImportedRecord {
  readonly principalId: string;
  readonly purpose: string;
  readonly action: WriteAction;
  /** Undefined for the latest. */
  readonly policyVersion: number | undefined;
}

export type ImportOutcome = 'recorded' | 'outdated' | 'erased';

async function importRecord(deps: Deps, tenant: Tenant, record: ConsentRecord): Promise<ImportOutcome> {
  const { principalId, purpose, action, policyVersion, recordedAt, evidence } = record;
  const body = { principalId, purposes: [purpose], policyVersion };
  const imported = { recordedAt, evidence };
  const answer = await append(deps, tenant, { action, body, source: 'import', imported, idempotency: null });
  return answer === 'outdated' || answer === 'erased' ? answer : 'recorded';
}

async function previewImport(
  { database, clock }: Deps,
  tenant: Tenant,
  records: readonly ConsentRecord[],
  last: LastChoices,
): Promise<ImportOutcome[]> {
  const requests = records.map((record) => {
    const principal = tenant.refOf(record.principalId);
    return {
      principal,
      entries: [{ purpose: record.purpose }],
      isGrant: record.action === 'grant',
      imported: record,
      now: clock(),
      stateMac: tenant.stateMac,
    };
  });
  for (const [key, known] of await loadLastChoices(database.read, tenant.kid, requests))
    if (!last.has(key)) last.set(key, known);
  return requests.map((request) => refuseRecord(last, request) ?? 'recorded');
}

/** Joins the browser with the account of the session; a browser that is its own account is joined already. */
async function join(
  { database, clock }: Deps,
  tenant: Tenant,
  { principal, principalId }: Pick<PrincipalSession, 'principal' | 'principalId'>,
  browserId: string,
) {
  if (browserId === principalId)
    throw new Refusal('invalid-request', { details: ['principalId: is the session’s own'] });
  const { joinedAt, isNew } = await joinPrincipals(database, tenant, {
    account: { ref: principal, id: principalId },
    browser: { ref: tenant.refOf(browserId), id: browserId },
    actorRef: rightsRef(tenant.rightsKey, 'principal', principal),
    now: clock(),
  });
  return { principalId, joined: browserId, joinedAt: isoTime(joinedAt), isNew };
}

async function history(
  { database }: Deps,
  tenant: Tenant,
  principalId: string,
  { cursor, limit = HISTORY_PAGE }: HistoryPage,
): Promise<HistoryResponse> {
  const before = cursor === undefined ? null : Number(cursor);
  const page = { before, limit: limit + 1 };
  const principals = await joinedRefs(database, tenant, tenant.refOf(principalId));
  const events = await listHistory(database, tenant, principals, page);
  const shown = events.slice(0, limit);
  return {
    principalId,
    events: shown.map(({ seq, purpose, choice, at, detail }) => ({
      seq,
      type: `consent.${choice}` as const,
      purpose,
      time: isoTime(at),
      ...detail,
    })),
    nextCursor: events.length > limit ? String(shown.at(-1)?.seq ?? '') : null,
  };
}

export const createConsentService = (deps: Deps): ConsentService => ({
  check: (tenant, request, isSecret = false) => check(deps, tenant, request, isSecret),
  checkAll: (tenant, checks, isSecret = false) => checkAll(deps, tenant, checks, isSecret),
  decideAll: (tenant, checks) => decideAll(deps, tenant, checks),
  checkTerms,
  checkDefinitions: (tenant, body) => checkDefinitions(deps, tenant, body),
  write: (tenant, request) => write(deps, tenant, request),
  importRecord: (tenant, record) => importRecord(deps, tenant, record),
  previewImport: (tenant, records, last) => previewImport(deps, tenant, records, last),
  knows: (tenant, principalId) => knows(deps, tenant, principalId),
  history: (tenant, principalId, page) => history(deps, tenant, principalId, page),
  join: (tenant, session, browserId) => join(deps, tenant, session, browserId),
  openSession: (tenant, principalId, keyId) => openSession(deps, tenant, principalId, keyId),
  readSession: (tenantOf, token) => readSession(deps, tenantOf, token),
});
