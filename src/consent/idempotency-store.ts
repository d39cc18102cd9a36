import { makeReads } from '../db/reads.ts';
import { type Bindings, type HotTransaction, insertMany } from '../db/sql.ts';
import { DAY } from '../lib/clock.ts';
import type { Appended, AppendRequest } from './append.ts';

/** What a write with an Idempotency-Key answered is answered again for 24 hours (contract section 7). */
const IDEMPOTENCY_MS = DAY;

export interface KnownAnswer {
  readonly bodyHash: string;
  readonly answer: Appended;
}

/** Null: the caller gave no Idempotency-Key. */
export const idempotencyId = ({ idempotency }: AppendRequest): string | null =>
  idempotency && `${idempotency.caller}|${idempotency.key}`;

const readAnswers = makeReads({
  about: { kid: 'text', caller: 'text', key: 'text', now: 'bigint' },
  sql: `SELECT k.caller AS caller, k.key AS key, k.body_hash AS body_hash, k.answer AS answer
    FROM q JOIN idempotency_keys k ON k.kid = q.kid AND k.caller = q.caller AND k.key = q.key
    WHERE k.expires_at > q.now`,
  columns: ['caller', 'key', 'body_hash', 'answer'],
});

export async function loadAnswers(
  tx: HotTransaction,
  kid: string,
  batch: readonly AppendRequest[],
): Promise<Map<string, KnownAnswer>> {
  const now = Math.max(...batch.map((request) => request.now));
  const keys = batch.flatMap(({ idempotency }): Bindings[] =>
    idempotency ? [[kid, idempotency.caller, idempotency.key, now]] : [],
  );
  if (keys.length === 0) return new Map();
  const [rows = []] = await readAnswers(tx, keys);
  return new Map(
    rows.map(([caller, key, bodyHash, answer]) => [
      `${caller}|${key}`,
      { bodyHash: String(bodyHash), answer: JSON.parse(String(answer)) as Appended },
    ]),
  );
}

export async function saveAnswers(
  tx: HotTransaction,
  kid: string,
  fresh: readonly [AppendRequest, Appended][],
): Promise<void> {
  const rows = fresh.flatMap(([{ idempotency, now, principal }, answer]): Bindings[] => {
    if (!idempotency) return [];
    const { caller, key, bodyHash } = idempotency;
    return [[kid, caller, key, bodyHash, principal, JSON.stringify(answer), now + IDEMPOTENCY_MS]];
  });
  await insertMany(
    tx,
    'INSERT INTO idempotency_keys (kid, caller, key, body_hash, principal, answer, expires_at)',
    rows,
    `ON CONFLICT (kid, caller, key) DO UPDATE SET body_hash = excluded.body_hash,
      principal = excluded.principal, answer = excluded.answer, expires_at = excluded.expires_at`,
  );
}
