import { randomBytes } from 'node:crypto';
import { Fault } from '../db/group-commit.ts';
import { pipelined } from '../db/round-trip.ts';
import { type HotTransaction, hasRowLocks } from '../db/sql.ts';
import type { EntryDetail } from '../ledger/commitment.ts';
import { type PersonalType, personalEntry } from '../ledger/entries.ts';
import { iso } from '../lib/clock.ts';
import type { Head } from '../log/append-store.ts';
import { idempotencyId, loadAnswers } from './idempotency-store.ts';
import type { Appended, AppendRequest, PlannedEntry } from './plan-write.ts';
import { applyToPrincipal, loadPrincipals, openPrincipals, type Principal } from './principals-store.ts';

/** What writes of consent come to, but for their place in the log. */

const SALT_BYTES = 16;

const TYPE_OF: Readonly<Record<PlannedEntry['choice'], PersonalType>> = {
  granted: 'consent.granted',
  denied: 'consent.denied',
  withdrawn: 'consent.withdrawn',
  'gpc-opt-out': 'consent.gpc-opt-out',
};

export type Batch = readonly AppendRequest[];

/** A write that does not end the opt-out is under it all the same, and the evidence must not read as if it had ended it. */
function toDetail({ detail, purpose }: PlannedEntry, { gpc, gpcExcept }: Principal): EntryDetail {
  return { ...detail, gpc: gpc && !gpcExcept.has(purpose), expiresAt: iso(detail.expiresAt) };
}

export interface Written {
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
    const head = { type: TYPE_OF[entry.choice], at: request.now, purpose: entry.purpose };
    return { bytes: personalEntry(head, opening), salt, entry, detail, request };
  });
}

type Known = readonly [
  answers: Awaited<ReturnType<typeof loadAnswers>>,
  rows: Awaited<ReturnType<typeof loadPrincipals>>,
];
export type Answer = Appended | 'conflict' | 'erased';
export type Outcomes = Map<AppendRequest, Answer | Fault>;

/** What a batch comes to, but for its place in the log. */
interface Prepared {
  /** Of what is not written. */
  readonly results: Outcomes;
  readonly principals: ReturnType<typeof openPrincipals>;
  readonly fresh: Batch;
  readonly written: readonly Written[];
}

/** What decides about the batch. */
export const readKnown = (tx: HotTransaction, kid: string, batch: Batch) =>
  pipelined(
    tx,
    () => loadAnswers(tx, kid, batch),
    () => loadPrincipals(tx, kid, batch),
  );

/** @param batch of one tenant */
function prepare(kid: string, [answers, rows]: Known, batch: Batch): Prepared {
  const results: Outcomes = new Map();
  const first = new Set<string>();
  const unknown: AppendRequest[] = [];
  for (const request of batch) {
    const id = idempotencyId(request);
    const known = id === null ? undefined : answers.get(id);
    if (known?.answer === 'erased') results.set(request, 'erased');
    else if (known)
      results.set(request, known.bodyHash === request.idempotency?.bodyHash ? known.answer : 'conflict');
    else if (id === null || !first.has(id)) unknown.push(request);
    if (id !== null) first.add(id);
  }
  const principals = openPrincipals(rows, kid, unknown);
  const written = unknown.flatMap((request) => {
    const principal = principals.get(request.principal) as Principal | Fault;
    if (principal instanceof Fault) {
      results.set(request, principal);
      return [];
    }
    applyToPrincipal(principal, request);
    return buildEntries(request, principal);
  });
  return { results, principals, written, fresh: unknown.filter((request) => !results.has(request)) };
}

const textOf = ([answers, rows]: Known): string => JSON.stringify([[...answers], [...rows]]);

interface Early {
  readonly batch: Batch;
  readonly known: Known;
  readonly prepared: Prepared;
}

/**
 * Where another node appends too, the lock is waited for, and who holds it keeps the others waiting. What a batch comes to is
 * then worked out before it, and holds if what decides is the same behind it.
 */
export function makeAhead() {
  /** The size that this node left a log with. */
  const left = new Map<string, number>();
  const shared = new Set<string>();
  return {
    async prepare(tx: HotTransaction, kid: string, batch: Batch): Promise<Early | undefined> {
      if (!shared.has(kid) || !hasRowLocks(tx)) return undefined;
      const known = await readKnown(tx, kid, batch);
      return { batch, known, prepared: prepare(kid, known, batch) };
    },
    /** @param known read behind the lock of `head` */
    settle(early: Early | undefined, kid: string, { size }: Head, known: Known, batch: Batch): Prepared {
      const isHeld = early?.batch.length === batch.length && textOf(early.known) === textOf(known);
      const prepared = isHeld ? early.prepared : prepare(kid, known, batch);
      if (Number(size) === (left.get(kid) ?? Number(size))) shared.delete(kid);
      else shared.add(kid);
      left.set(kid, Number(size) + prepared.written.length);
      return prepared;
    },
  };
}

export type Ahead = ReturnType<typeof makeAhead>;
