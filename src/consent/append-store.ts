import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type { Database } from '../db/db.ts';
import { Fault, makeGroup, oneTenant } from '../db/group-commit.ts';
import {
  type Bindings,
  type HotTransaction,
  inOneStatement,
  insertMany,
  makeReads,
  pipelined,
} from '../db/sql.ts';
import { makeMasterKey } from '../keys/master-key.ts';
import { type EntryDetail, personalEntry } from '../ledger/entries.ts';
import { DAY, iso } from '../lib/clock.ts';
import { TenantGone } from '../lib/errors.ts';
import { appendEntries, type Head, takeHead } from '../log/entries.ts';
import { enqueue, type OutboxEntry } from '../notify/outbox.ts';
import { type LastChoices, loadLastChoices, refuseRecord } from './import-store.ts';
import type { Appended, AppendRequest, PlannedEntry } from './plan-write.ts';
import {
  applyToPrincipal,
  loadPrincipals,
  openPrincipals,
  type Principal,
  savePrincipals,
} from './principals-store.ts';

/** What a write with an Idempotency-Key answered is answered again for 24 hours (contract section 7). */
const IDEMPOTENCY_MS = DAY;

/** In the column of the caller: the key column is a MAC of caller and key. A client's key may contain an order number or an address. */
const MARKED = '';
/** The same, after the person was erased. */
const ERASED = 'erased';

type KnownAnswer = { readonly bodyHash: string; readonly answer: Appended | 'erased' };

/** Null: the caller gave no Idempotency-Key. */
const idempotencyId = ({ idempotency }: AppendRequest): string | null =>
  idempotency && `${idempotency.caller}|${idempotency.key}`;

const readAnswers = makeReads({
  about: { kid: 'text', caller: 'text', key: 'text', now: 'bigint' },
  sql: `SELECT k.caller AS caller, k.key AS key, k.body_hash AS body_hash, k.answer AS answer
    FROM q JOIN idempotency_keys k ON k.kid = q.kid AND k.caller = q.caller AND k.key = q.key
    WHERE k.expires_at > q.now`,
  columns: ['caller', 'key', 'body_hash', 'answer'],
});

async function loadAnswers(tx: HotTransaction, kid: string, batch: readonly AppendRequest[]) {
  const now = Math.max(...batch.map((request) => request.now));
  const asked = new Map<string, string>();
  const keys = batch.flatMap((request): Bindings[] => {
    const { idempotency, stateMac } = request;
    if (!idempotency) return [];
    const { caller, key } = idempotency;
    const mark = stateMac.ofRetry(caller, key);
    for (const by of [MARKED, ERASED]) asked.set(`${by}|${mark}`, idempotencyId(request) ?? '');
    return [MARKED, ERASED].map((by): Bindings => [kid, by, mark, now]);
  });
  if (keys.length === 0) return new Map<string, KnownAnswer>();
  const [rows = []] = await readAnswers(tx, keys);
  return new Map(
    rows.map(([caller, key, bodyHash, answer]): [string, KnownAnswer] => [
      asked.get(`${caller}|${key}`) ?? '',
      caller === ERASED
        ? { bodyHash: '', answer: 'erased' }
        : { bodyHash: String(bodyHash), answer: JSON.parse(String(answer)) as Appended },
    ]),
  );
}

async function saveAnswers(
  tx: HotTransaction,
  kid: string,
  fresh: readonly [AppendRequest, Appended][],
): Promise<void> {
  const rows = fresh.flatMap(([{ idempotency, now, principal, stateMac }, answer]): Bindings[] => {
    if (!idempotency) return [];
    const { caller, key, bodyHash } = idempotency;
    const mark = stateMac.ofRetry(caller, key);
    return [[kid, MARKED, mark, bodyHash, principal, JSON.stringify(answer), now + IDEMPOTENCY_MS]];
  });
  await insertMany(
    tx,
    'INSERT INTO idempotency_keys (kid, caller, key, body_hash, principal, answer, expires_at)',
    rows,
    `ON CONFLICT (kid, caller, key) DO UPDATE SET body_hash = excluded.body_hash,
      principal = excluded.principal, answer = excluded.answer, expires_at = excluded.expires_at`,
  );
}

/** A retry of a write must not grant again what an erasure took: the MAC of its key stays for as long as the key would have been kept. */
export async function eraseAnswers(tx: Knex.Transaction, kid: string, principal: string): Promise<void> {
  const rows = await tx('idempotency_keys')
    .where({ kid, principal })
    .select<{ key: string; expires_at: number }[]>('key', 'expires_at');
  const marks = rows.map(({ key, expires_at }): Bindings => [kid, ERASED, key, '', '', '', expires_at]);
  const head = 'INSERT INTO idempotency_keys (kid, caller, key, body_hash, principal, answer, expires_at)';
  await insertMany(tx, head, marks, 'ON CONFLICT (kid, caller, key) DO NOTHING');
}

const MAX_BATCH = 200;
const MAX_WAITING = 10_000;
const SALT_BYTES = 16;

type Batch = readonly AppendRequest[];

/** A write that does not end the opt-out is under it all the same, and the evidence must not read as if it had ended it. */
function toDetail({ detail, purpose }: PlannedEntry, { gpc, gpcExcept }: Principal): EntryDetail {
  return { ...detail, gpc: gpc && !gpcExcept.has(purpose), expiresAt: iso(detail.expiresAt) };
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
    const salt = randomBytes(SALT_BYTES);
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

async function saveEntries(tx: HotTransaction, kid: string, placed: readonly Placed[]): Promise<void> {
  const openings = placed.map(
    ({ seq, salt, entry, detail, request }): Bindings => [
      kid,
      seq,
      request.principal,
      entry.purpose,
      entry.choice,
      request.now,
      salt.toString('base64url'),
      JSON.stringify(detail),
    ],
  );
  const head = 'INSERT INTO consent_openings (kid, seq, principal, purpose, choice, at, salt, detail)';
  await insertMany(tx, head, openings);
  const state = new Map<string, Bindings>();
  for (const { seq, hash, entry, request } of placed) {
    const { principal, now: at, stateMac } = request;
    const { purpose, choice } = entry;
    const { policyVersion, expiresAt, overGpc = false, source } = entry.detail;
    const given = choice === 'granted' && source.startsWith('agent:') ? 'agent' : null;
    const said = { choice, policyVersion, expiresAt, at, seq, hash, overGpc, given, doubtSeq: null } as const;
    const mac = stateMac.ofState(principal, purpose, said);
    const row = [
      kid,
      principal,
      purpose,
      choice,
      policyVersion,
      expiresAt,
      at,
      seq,
      hash,
      overGpc,
      given,
      mac,
    ];
    state.set(`${principal}|${purpose}`, row);
  }
  await insertMany(
    tx,
    'INSERT INTO consent_state (kid, principal, purpose, choice, policy_version, expires_at, at, seq, hash, over_gpc, given, mac)',
    [...state.values()],
    `ON CONFLICT (kid, principal, purpose) DO UPDATE SET choice = excluded.choice,
      policy_version = excluded.policy_version, expires_at = excluded.expires_at, at = excluded.at,
      seq = excluded.seq, hash = excluded.hash, over_gpc = excluded.over_gpc,
      given = excluded.given, doubt_seq = NULL, mac = excluded.mac`,
  );
}

type Known = readonly [
  answers: Awaited<ReturnType<typeof loadAnswers>>,
  rows: Awaited<ReturnType<typeof loadPrincipals>>,
];
/** `outdated`: an imported record that is not newer than what is known. */
type Answer = Appended | 'conflict' | 'erased' | 'outdated';
type Outcomes = Map<AppendRequest, Answer | Fault>;

/** Locks the head of the tenant's log and reads what decides about the batch, in one round trip. */
const lockAndRead = (tx: HotTransaction, kid: string, batch: Batch) =>
  pipelined(
    tx,
    () => takeHead(tx, kid),
    () => loadAnswers(tx, kid, batch),
    () => loadPrincipals(tx, kid, batch),
  );

/**
 * Answers what was answered before, and refuses imported records that say nothing new.
 * @returns what is to be written, and by its key the first request of those that share one
 */
function answerKnown(batch: Batch, answers: Known[0], last: LastChoices, results: Outcomes) {
  const first = new Map<string, AppendRequest>();
  const unknown: AppendRequest[] = [];
  for (const request of batch) {
    const id = idempotencyId(request);
    const known = id === null ? undefined : answers.get(id);
    if (known?.answer === 'erased') results.set(request, 'erased');
    else if (known)
      results.set(request, known.bodyHash === request.idempotency?.bodyHash ? known.answer : 'conflict');
    else if (id === null || !first.has(id)) {
      const refused = refuseRecord(last, request);
      if (refused === null) unknown.push(request);
      else results.set(request, refused);
    }
    if (id !== null && !first.has(id)) first.set(id, request);
  }
  return { first, unknown };
}

/** @param batch of one tenant, whose head is locked */
async function appendTenant(
  tx: HotTransaction,
  kid: string,
  [head, answers, rows]: readonly [Head, ...Known],
  batch: Batch,
): Promise<Outcomes> {
  const results: Outcomes = new Map();
  const [any] = batch;
  if (!any) return results;
  const { first, unknown } = answerKnown(batch, answers, await loadLastChoices(tx, kid, batch), results);
  const principals = openPrincipals(rows, kid, unknown, makeMasterKey(any.wrapKey, randomBytes));
  const written = unknown.flatMap((request) => {
    const principal = principals.get(request.principal) as Principal | Fault;
    if (principal instanceof Fault) {
      results.set(request, principal);
      return [];
    }
    applyToPrincipal(principal, request);
    return buildEntries(request, principal);
  });
  const fresh = unknown.filter((request) => !results.has(request));
  await inOneStatement(tx, async (write) => {
    const bytes = written.map((entry) => entry.bytes);
    const appended = await appendEntries(write, kid, bytes, { known: head });
    const placed = written.map(
      (entry, i): Placed => ({ ...entry, ...(appended[i] as { seq: number; hash: string }) }),
    );
    await saveEntries(write, kid, placed);
    await savePrincipals(write, kid, principals, any.stateMac);
    await enqueue(write, placed.flatMap(outboxEntries));
    for (const request of fresh) {
      const own = placed.filter((entry) => entry.request === request);
      const entries = own.map(({ entry, seq, hash }) => ({ purpose: entry.purpose, seq, hash }));
      results.set(request, { entries });
    }
    const said = fresh.map((one): [AppendRequest, Appended] => [one, results.get(one) as Appended]);
    await saveAnswers(write, kid, said);
  });
  // The same key twice in one batch: the first one's answer, or a conflict.
  for (const request of batch) {
    if (results.has(request)) continue;
    const winner = first.get(idempotencyId(request) ?? '') as AppendRequest;
    const same = winner.idempotency?.bodyHash === request.idempotency?.bodyHash;
    results.set(request, same ? (results.get(winner) as Answer | Fault) : 'conflict');
  }
  return results;
}

async function appendBatch(database: Database, batch: Batch): Promise<(Answer | Fault)[]> {
  const kids = [...new Set(batch.map((request) => request.kid))].sort();
  return database.hotTransaction(async (tx) => {
    const results: Outcomes = new Map();
    // Heads are locked in one order on every node.
    for (const kid of kids) {
      const asked = batch.filter((request) => request.kid === kid);
      const [head, ...known] = await lockAndRead(tx, kid, asked);
      const isGone = head instanceof Error;
      const gone = new Fault(isGone ? head : new TenantGone());
      for (const request of asked) results.set(request, gone);
      const own = asked.filter(({ since }) => !isGone && since === Number(head.since));
      if (!isGone)
        for (const [request, answer] of await appendTenant(tx, kid, [head, ...known], own))
          results.set(request, answer);
    }
    return batch.map((request) => results.get(request) as Answer | Fault);
  });
}

/** Group commit into the logs: a node drains its queue under the lock, inserts once, commits, then answers. */
export function makeConsentAppender(database: Database) {
  const group = makeGroup<AppendRequest, Answer>({
    name: 'consent',
    run: (batch) => appendBatch(database, batch),
    maxBatch: MAX_BATCH,
    maxWaiting: MAX_WAITING,
    ...oneTenant(database.kind, ({ kid }: AppendRequest) => kid),
  });
  return {
    /**
     * Appends to the tenant's log, in the order of commits, without gaps. Durable before it answers; entries, openings and
     * state commit together. A known Idempotency-Key answers what it answered before, `conflict` for another body, or `erased`.
     * Requests share a commit, and no failure: what is wrong with one principal or tenant is theirs alone.
     * @throws {Unavailable} when nothing was written
     * @throws {TenantGone}
     */
    append: (request: AppendRequest): Promise<Answer> => group.submit(request),
    idle: () => group.idle(),
  };
}

export type ConsentAppender = ReturnType<typeof makeConsentAppender>;
