import type { NonceClaim } from '../ingest/ports.ts';
import { nonceRows } from './ingest-rows.ts';
import type { Cells, Read } from './reads.ts';
import { type Bindings, type HotTransaction, insertMany } from './sql.ts';
import { readTimeMarks, type TimeMarks } from './time-marks.ts';

export interface Claims {
  /** Which claims are a nonce's first; of two in one batch the first is. */
  readonly won: readonly boolean[];
  /** Of a moment at which no other node could forget one of these nonces any more. */
  readonly marks: TimeMarks;
}

const idOf = (kid: string, nonce: string): string => `${kid}|${nonce}`;

/** A claim is a row: another node that has the same nonce waits for this transaction. */
export async function claimRows(tx: HotTransaction, claims: readonly NonceClaim[]): Promise<Claims> {
  const claimed = await insertMany<{ kid: string; nonce: string }>(
    tx,
    'INSERT INTO nonces (kid, nonce, expires_at)',
    nonceRows(claims),
    'ON CONFLICT DO NOTHING RETURNING kid, nonce',
  );
  const free = new Set(claimed.map(({ kid, nonce }) => idOf(kid, nonce)));
  const won = claims.map(({ kid, nonce }) => free.delete(idOf(kid, nonce)));
  // After the claims: what another node forgets meanwhile, they waited for.
  const marks = await readTimeMarks(
    tx,
    claims.map(({ kid }) => kid),
  );
  return { won, marks };
}

/** Which of these nonces were claimed. */
export const TAKEN: Read = {
  about: { kid: 'text', nonce: 'text' },
  sql: 'SELECT n.kid AS kid, n.nonce AS nonce FROM q JOIN nonces n ON n.kid = q.kid AND n.nonce = q.nonce',
  columns: ['kid', 'nonce'],
};

/** What {@link TAKEN} is asked about. */
export const askedNonces = (claims: readonly NonceClaim[]): Bindings[] =>
  claims.map(({ kid, nonce }) => [kid, nonce]);

/**
 * Where nobody else writes meanwhile: what is free is won, and its row may be written later.
 * @param taken cells of {@link TAKEN}
 */
export function claimFree(claims: readonly NonceClaim[], taken: readonly Cells[]): boolean[] {
  const gone = new Set(taken.map(([kid, nonce]) => idOf(String(kid), String(nonce))));
  return claims.map(({ kid, nonce }) => {
    const isFree = !gone.has(idOf(kid, nonce));
    gone.add(idOf(kid, nonce));
    return isFree;
  });
}
