import type { Knex } from 'knex';
import type { Appended, AppendRequest } from '../consent/ports.ts';
import { DAY } from '../lib/clock.ts';

/** What a write with an Idempotency-Key answered is answered again for 24 hours (contract section 7). */
const IDEMPOTENCY_MS = DAY;

export interface KnownAnswer {
  readonly bodyHash: string;
  readonly answer: Appended;
}

/** Null: the caller gave no Idempotency-Key. */
export const idempotencyId = ({ idempotency }: AppendRequest): string | null =>
  idempotency && `${idempotency.caller}|${idempotency.key}`;

export async function loadAnswers(
  tx: Knex.Transaction,
  kid: string,
  batch: readonly AppendRequest[],
): Promise<Map<string, KnownAnswer>> {
  const keys = batch.flatMap(({ idempotency }) =>
    idempotency ? [[idempotency.caller, idempotency.key]] : [],
  );
  if (keys.length === 0) return new Map();
  const now = Math.max(...batch.map((request) => request.now));
  const rows = await tx('idempotency_keys')
    .where({ kid })
    .whereIn(['caller', 'key'], keys)
    .where('expires_at', '>', now)
    .select<{ caller: string; key: string; body_hash: string; answer: string }[]>(
      'caller',
      'key',
      'body_hash',
      'answer',
    );
  return new Map(
    rows.map((row) => [
      `${row.caller}|${row.key}`,
      { bodyHash: row.body_hash, answer: JSON.parse(row.answer) as Appended },
    ]),
  );
}

export async function saveAnswers(
  tx: Knex.Transaction,
  kid: string,
  fresh: readonly [AppendRequest, Appended][],
): Promise<void> {
  const rows = fresh.flatMap(([{ idempotency, now, principal }, answer]) => {
    if (!idempotency) return [];
    const { caller, key, bodyHash } = idempotency;
    const expires_at = now + IDEMPOTENCY_MS;
    return [{ kid, caller, key, body_hash: bodyHash, principal, answer: JSON.stringify(answer), expires_at }];
  });
  if (rows.length > 0) await tx('idempotency_keys').insert(rows).onConflict(['kid', 'caller', 'key']).merge();
}
