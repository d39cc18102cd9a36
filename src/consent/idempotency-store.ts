import type { Knex } from 'knex';
import { makeReads } from '../db/reads.ts';
import { type Bindings, type HotTransaction, insertMany } from '../db/sql.ts';
import { DAY } from '../lib/clock.ts';
import type { Appended, AppendRequest } from './plan-write.ts';

/** What a write with an Idempotency-Key answered is answered again for 24 hours (contract section 7). */
const IDEMPOTENCY_MS = DAY;

/** In the column of the caller: the key column is a MAC of caller and key. A client's key may contain an order number or an address. */
const MARKED = '';
/** The same, after the person was erased. */
const ERASED = 'erased';

type KnownAnswer = { readonly bodyHash: string; readonly answer: Appended | 'erased' };

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

export async function loadAnswers(tx: HotTransaction, kid: string, batch: readonly AppendRequest[]) {
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

export async function saveAnswers(
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
