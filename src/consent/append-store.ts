import type { Database } from '../db/db.ts';
import { Fault, makeGroup, oneTenant } from '../db/group-commit.ts';
import { inOneStatement, pipelined } from '../db/round-trip.ts';
import { type Bindings, type HotTransaction, insertMany } from '../db/sql.ts';
import { TenantGone } from '../lib/errors.ts';
import { appendEntries, type Head, takeHead } from '../log/append-store.ts';
import { enqueue, type OutboxEntry } from '../webhooks/store.ts';
import { idempotencyId, saveAnswers } from './idempotency-store.ts';
import type { Appended, AppendRequest } from './plan-write.ts';
import {
  type Ahead,
  type Answer,
  type Batch,
  makeAhead,
  type Outcomes,
  readKnown,
  type Written,
} from './prepared-store.ts';
import { savePrincipals } from './principals-store.ts';

const MAX_BATCH = 200;
const MAX_WAITING = 10_000;

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

/** Locks the head of the tenant's log and reads what decides about the batch, in one round trip. */
const lockAndRead = (tx: HotTransaction, kid: string, batch: Batch) =>
  pipelined(
    tx,
    () => takeHead(tx, kid),
    () => readKnown(tx, kid, batch),
  );

/** @param head the tenant's, locked */
async function place(
  tx: HotTransaction,
  kid: string,
  head: Head,
  prepared: ReturnType<Ahead['settle']>,
): Promise<Outcomes> {
  const { principals, written, fresh } = prepared;
  const results = new Map(prepared.results);
  await inOneStatement(tx, async (write) => {
    const bytes = written.map((entry) => entry.bytes);
    const appended = await appendEntries(write, kid, bytes, head);
    const placed = written.map(
      (entry, i): Placed => ({ ...entry, ...(appended[i] as { seq: number; hash: string }) }),
    );
    await saveEntries(write, kid, placed);
    await savePrincipals(write, kid, principals);
    await enqueue(write, placed.flatMap(outboxEntries));
    for (const request of fresh) {
      const own = placed.filter((entry) => entry.request === request);
      const entries = own.map(({ entry, seq, hash }) => ({ purpose: entry.purpose, seq, hash }));
      results.set(request, { entries });
    }
    await saveAnswers(
      write,
      kid,
      fresh.map((request) => [request, results.get(request) as Appended]),
    );
  });
  return results;
}

/** The same key twice in one batch: the first one's answer, or a conflict. */
function answerTwins(results: Outcomes, batch: Batch): void {
  for (const request of batch) {
    if (results.has(request)) continue;
    const id = idempotencyId(request);
    const winner = batch.find((other) => idempotencyId(other) === id) as AppendRequest;
    const same = winner.idempotency?.bodyHash === request.idempotency?.bodyHash;
    results.set(request, same ? (results.get(winner) as Answer | Fault) : 'conflict');
  }
}

async function appendTenant(tx: HotTransaction, ahead: Ahead, kid: string, batch: Batch): Promise<Outcomes> {
  const early = await ahead.prepare(tx, kid, batch);
  const [head, known] = await lockAndRead(tx, kid, batch);
  const isGone = head instanceof Error;
  const own = batch.filter(({ since }) => !isGone && since === Number(head.since));
  const results: Outcomes = new Map();
  if (!isGone) {
    const prepared = ahead.settle(early, kid, head, known, own);
    for (const [request, answer] of await place(tx, kid, head, prepared)) results.set(request, answer);
    answerTwins(results, own);
  }
  const gone = new Fault(isGone ? head : new TenantGone());
  for (const request of batch) if (!results.has(request)) results.set(request, gone);
  return results;
}

async function appendBatch(database: Database, ahead: Ahead, batch: Batch): Promise<(Answer | Fault)[]> {
  // Heads are locked in one order on every node.
  const kids = [...new Set(batch.map((request) => request.kid))].sort();
  return database.hotTransaction(async (tx) => {
    const results: Outcomes = new Map();
    for (const kid of kids) {
      const own = batch.filter((request) => request.kid === kid);
      for (const [request, answer] of await appendTenant(tx, ahead, kid, own)) results.set(request, answer);
    }
    return batch.map((request) => results.get(request) as Answer | Fault);
  });
}

/** Group commit into the logs: a node drains its queue under the lock, inserts once, commits, then answers. */
export function makeConsentAppender(database: Database) {
  const ahead = makeAhead();
  const group = makeGroup<AppendRequest, Answer>({
    name: 'consent',
    run: (batch) => appendBatch(database, ahead, batch),
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
