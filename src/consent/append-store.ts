import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { createGroup, ItemFault, oneTenant } from '../db/group-commit.ts';
import {
  type Bindings,
  countOf,
  insertMany,
  joinRow,
  runAsked,
  sendTogether,
  type Transaction,
} from '../db/sql.ts';
import { createMasterKey } from '../keys/master-key.ts';
import { type EntryDetail, personalEntry } from '../ledger/entries.ts';
import { DAY, iso } from '../lib/clock.ts';
import { poolRandom } from '../lib/crypto.ts';
import { TenantGone } from '../lib/errors.ts';
import { type AppendedEntry, placeEntries, tryLockHead, writePlaced } from '../log/entries-store.ts';
import { enqueue, type OutboxEntry } from '../notify/outbox-store.ts';
import { refuseRecords } from './import-store.ts';
import type { Appended, AppendRequest, PlannedEntry } from './plan-write.ts';
import {
  applyGrant,
  applyToPrincipal,
  joinedWith,
  loadJoined,
  loadPrincipals,
  openPrincipals,
  type Principal,
  savePrincipals,
} from './principals-store.ts';

/**
 * Writes consent into the logs, in one transaction for all waiting requests (group commit): lock the head of
 * the tenant's log, look up earlier answers, read the principals, append entries, openings and state. Every
 * statement is of one tenant.
 */

export interface ConsentAppender {
  /**
   * Appends to the tenant's log without gaps, and answers after the commit. A known Idempotency-Key gets the
   * earlier answer, `conflict` for another body, or `erased`. A fault of one principal or tenant affects no
   * other.
   * @throws {Unavailable} when nothing was written; {@link TenantGone}
   */
  append(request: AppendRequest): Promise<Answer>;
  idle(): Promise<void>;
}

const MAX_BATCH = 200;
const MAX_WAITING = 10_000;

type Batch = readonly AppendRequest[];
/** `outdated`: an imported record that is not newer than the stored choice. */
type Answer = Appended | 'conflict' | 'erased' | 'outdated';
type Outcomes = Map<AppendRequest, Answer | ItemFault>;

/** A node drains its queue under the lock, inserts once, commits, then answers. */
export function createConsentAppender(database: Database): ConsentAppender {
  const group = createGroup<AppendRequest, Answer>({
    name: 'consent',
    run: (batch) => database.transaction((tx) => appendAll(tx, batch)),
    maxBatch: MAX_BATCH,
    maxWaiting: MAX_WAITING,
    ...oneTenant(database.kind, ({ kid }: AppendRequest) => kid),
  });
  return {
    append: (request) => group.submit(request),
    idle: () => group.idle(),
  };
}

/** A batch is of one tenant on PostgreSQL; on SQLite tenants share the commit. */
async function appendAll(tx: Transaction, batch: Batch): Promise<(Answer | ItemFault)[]> {
  const outcomes: Outcomes = new Map();
  // Heads are locked in one order on every node.
  for (const kid of [...new Set(batch.map((request) => request.kid))].sort()) {
    const tenantBatch = batch.filter((request) => request.kid === kid);
    await appendTenant(tx, kid, tenantBatch, outcomes);
  }
  return batch.map((request) => outcomes.get(request) as Answer | ItemFault);
}

/** @param outcomes gets the answer to each request */
async function appendTenant(tx: Transaction, kid: string, batch: Batch, outcomes: Outcomes) {
  // Reads after the lock see what its last holder wrote.
  const [head, answers, rows] = await sendTogether(
    () => tryLockHead(tx, kid),
    () => loadAnswers(tx, kid, batch),
    () => loadPrincipals(tx, kid, batch),
  );
  const isPresent = ({ since }: AppendRequest) => !(head instanceof Error) && since === Number(head.since);
  const present = batch.filter(isPresent);
  if (present.length < batch.length) {
    const tenantGone = new ItemFault(head instanceof Error ? head : new TenantGone());
    for (const request of batch) outcomes.set(request, tenantGone);
  }
  const [firstRequest] = present;
  if (head instanceof Error || !firstRequest) return;

  const { unanswered, repeated } = answerKnown(present, answers, outcomes);

  const unrefused = await refuseRecords(tx, kid, unanswered, outcomes);
  const principals = openPrincipals(rows, kid, unrefused, createMasterKey(firstRequest.wrapKey, drawBytes));
  const joined = await loadJoined(tx, kid, unrefused, principals);
  const newRequests: AppendRequest[] = [];
  const newEntries = unrefused.flatMap((request) => {
    const principal = principals.get(request.principal) as Principal | ItemFault;
    if (principal instanceof ItemFault) {
      outcomes.set(request, principal);
      return [];
    }
    applyToPrincipal(principal, request);
    if (request.isGrant)
      for (const one of joinedWith(principal, joined, principals)) applyGrant(one, request);
    newRequests.push(request);
    return buildEntries(request, principal);
  });

  const log = placeEntries(
    head,
    newEntries.map((entry) => entry.bytes),
  );
  const placed = newEntries.map((entry, i): Placed => Object.assign(entry, log.appended[i] as AppendedEntry));
  answerNew(newRequests, placed, outcomes);
  await sendTogether(
    () => writePlaced(tx, kid, log),
    () => saveOpenings(tx, kid, placed),
    () => saveState(tx, kid, placed),
    () => savePrincipals(tx, kid, new Map([...joined, ...principals]), firstRequest.stateMac),
    () => enqueue(tx, placed.flatMap(outboxEntries)),
    () => saveAnswers(tx, kid, newRequests, outcomes),
  );
  for (const [request, original] of repeated) {
    const isSame = original.idempotency?.bodyHash === request.idempotency?.bodyHash;
    outcomes.set(request, isSame ? (outcomes.get(original) as Answer | ItemFault) : 'conflict');
  }
}

/** @param placed the entries of the requests, in their order */
function answerNew(requests: Batch, placed: readonly Placed[], outcomes: Outcomes): void {
  let start = 0;
  for (const request of requests) {
    const end = start + request.entries.length;
    const requestEntries = placed.slice(start, end);
    const entries = requestEntries.map(({ entry, seq, hash }) => ({ purpose: entry.purpose, seq, hash }));
    outcomes.set(request, { entries });
    start = end;
  }
}

// Retries: what a write with an Idempotency-Key answered is answered again for 24 hours (contract section 7).

const IDEMPOTENCY_MS = DAY;

/** Replaces the caller in a row, whose key is a MAC of both: keys may contain an order or an address. */
const MARKED = '';
/** Value of that column once the person was erased. */
const ERASED = 'erased';

type KnownAnswer = { readonly bodyHash: string; readonly answer: Appended | 'erased' };

/** A MAC of the caller's Idempotency-Key; null without one. */
const retryMark = ({ idempotency, stateMac }: AppendRequest): string | null =>
  idempotency && stateMac.ofRetry(idempotency.caller, idempotency.key);

const RETRIES = { caller: 'text', key: 'text' } as const;

async function loadAnswers(tx: Transaction, kid: string, batch: Batch) {
  const marks = [...new Set(batch.flatMap((request) => retryMark(request) ?? []))];
  const rows = marks.flatMap((mark) => [MARKED, ERASED].map((caller): Bindings => [caller, mark]));
  const sql = `SELECT k.caller AS caller, k.key AS mark, k.body_hash AS hash, k.answer AS answer
    FROM q ${joinRow(tx, 'idempotency_keys', 'k', 'k.kid = ? AND k.caller = q.caller AND k.key = q.key')}
    WHERE k.expires_at > ?`;
  const now = Math.max(...batch.map((request) => request.now));
  const answerRows = await runAsked<Readonly<Record<'caller' | 'mark' | 'hash' | 'answer', string>>>(
    tx,
    { columns: RETRIES, rows, sql },
    kid,
    now,
  );
  return new Map(
    answerRows.map(({ caller, mark, hash, answer }): [string, KnownAnswer] => [
      mark,
      caller === ERASED
        ? { bodyHash: '', answer: 'erased' }
        : { bodyHash: hash, answer: JSON.parse(answer) as Appended },
    ]),
  );
}

/** Gives known requests their earlier answers. `repeated` maps a request to an earlier one with its key. */
function answerKnown(batch: Batch, answers: ReadonlyMap<string, KnownAnswer>, outcomes: Outcomes) {
  const firstByKey = new Map<string, AppendRequest>();
  const unanswered: AppendRequest[] = [];
  const repeated: [AppendRequest, AppendRequest][] = [];
  for (const request of batch) {
    const mark = retryMark(request);
    const stored = mark === null ? undefined : answers.get(mark);
    const earlier = mark === null ? undefined : firstByKey.get(mark);
    if (stored?.answer === 'erased') outcomes.set(request, 'erased');
    else if (stored)
      outcomes.set(request, stored.bodyHash === request.idempotency?.bodyHash ? stored.answer : 'conflict');
    else if (earlier) repeated.push([request, earlier]);
    else {
      unanswered.push(request);
      if (mark !== null) firstByKey.set(mark, request);
    }
  }
  return { unanswered, repeated };
}

const INSERT_ANSWERS =
  'INSERT INTO idempotency_keys (kid, caller, key, body_hash, principal, answer, expires_at)';

async function saveAnswers(tx: Transaction, kid: string, newRequests: Batch, outcomes: Outcomes) {
  const rows = newRequests.flatMap((request): Bindings[] => {
    const { idempotency, now, principal } = request;
    if (!idempotency) return [];
    const answer = JSON.stringify(outcomes.get(request));
    return [[kid, MARKED, retryMark(request), idempotency.bodyHash, principal, answer, now + IDEMPOTENCY_MS]];
  });
  await insertMany(
    tx,
    INSERT_ANSWERS,
    rows,
    `ON CONFLICT (kid, caller, key) DO UPDATE SET body_hash = excluded.body_hash,
      principal = excluded.principal, answer = excluded.answer, expires_at = excluded.expires_at`,
  );
}

/** Keeps the MAC of each key until the key expires: a retry must not grant again what was erased. */
export async function eraseAnswers(tx: Knex.Transaction, kid: string, principal: string): Promise<void> {
  const rows = await tx('idempotency_keys')
    .where({ kid, principal })
    .select<{ key: string; expires_at: number }[]>('key', 'expires_at');
  const marks = rows.map(({ key, expires_at }): Bindings => [kid, ERASED, key, '', '', '', expires_at]);
  await insertMany(tx, INSERT_ANSWERS, marks, 'ON CONFLICT (kid, caller, key) DO NOTHING');
}

/** Counts the entries of the log that name the principal and can still be opened. */
export const countOpenings = (tx: Knex, kid: string, principal: string): Promise<number> =>
  countOf(tx('consent_openings').where({ kid, principal }));

// Entries of the log, what opens them, and the state that a check reads.

const SALT_BYTES = 16;
/** Draws salts and IVs; a person's key is drawn alone. */
const drawBytes = poolRandom(randomBytes);

/** Under a GPC opt-out the entry says `gpc: true`, even if this write did not mention GPC. */
function toDetail({ detail, purpose }: PlannedEntry, { gpc, gpcExcept }: Principal): EntryDetail {
  const present = { gpc: gpc && !gpcExcept.has(purpose), expiresAt: iso(detail.expiresAt) };
  // A spread makes a hidden class for each object, see `withHeaders`.
  return Object.assign({}, detail, present);
}

interface Written {
  readonly bytes: Buffer;
  readonly salt: Buffer;
  readonly entry: PlannedEntry;
  readonly detail: EntryDetail;
  readonly request: AppendRequest;
}

function buildEntries(request: AppendRequest, principal: Principal): Written[] {
  return request.entries.map((entry) => {
    const salt = drawBytes(SALT_BYTES);
    const detail = toDetail(entry, principal);
    const opening = { key: principal.key, salt, principalId: request.principalId, detail };
    const head = { type: `consent.${entry.choice}` as const, at: request.now, purpose: entry.purpose };
    return { bytes: personalEntry(head, opening), salt, entry, detail, request };
  });
}

type Placed = Written & { readonly seq: number; readonly hash: string };

function outboxEntries({ entry, request, seq, hash }: Placed): OutboxEntry[] {
  const { kid, principal, now } = request;
  const { purpose, choice } = entry;
  return request.notify({ purpose, choice, seq, hash }).map((notification) => ({
    ...notification,
    kid,
    principal,
    requestId: null,
    at: now,
  }));
}

async function saveOpenings(tx: Transaction, kid: string, placed: readonly Placed[]): Promise<void> {
  const rows = placed.map(({ seq, salt, entry: { purpose, choice }, detail, request }): Bindings => {
    const { principal, now } = request;
    return [kid, seq, principal, purpose, choice, now, salt.toString('base64url'), JSON.stringify(detail)];
  });
  const head = 'INSERT INTO consent_openings (kid, seq, principal, purpose, choice, at, salt, detail)';
  await insertMany(tx, head, rows);
}

/** The last entry of each principal and purpose. */
async function saveState(tx: Transaction, kid: string, placed: readonly Placed[]): Promise<void> {
  const rows = new Map<string, Bindings>();
  for (const { seq, hash, entry, request } of placed) {
    const { principal, now: at, stateMac } = request;
    const { purpose, choice } = entry;
    const { policyVersion, expiresAt, overGpc = false, source, definition = null } = entry.detail;
    const given = choice === 'granted' && source.startsWith('agent:') ? 'agent' : null;
    const doubtSeq = null;
    const row = {
      choice,
      policyVersion,
      expiresAt,
      at,
      seq,
      hash,
      overGpc,
      given,
      doubtSeq,
      definition,
    } as const;
    const event = [choice, policyVersion, expiresAt, at, seq, hash, overGpc, given, definition];
    const mac = stateMac.ofState(principal, purpose, row);
    rows.set(`${principal}|${purpose}`, [kid, principal, purpose, ...event, mac]);
  }
  await insertMany(
    tx,
    'INSERT INTO consent_state (kid, principal, purpose, choice, policy_version, expires_at, at, seq, hash, over_gpc, given, definition, mac)',
    [...rows.values()],
    `ON CONFLICT (kid, principal, purpose) DO UPDATE SET choice = excluded.choice,
      policy_version = excluded.policy_version, expires_at = excluded.expires_at, at = excluded.at,
      seq = excluded.seq, hash = excluded.hash, over_gpc = excluded.over_gpc,
      given = excluded.given, doubt_seq = NULL, definition = excluded.definition, mac = excluded.mac`,
  );
}
