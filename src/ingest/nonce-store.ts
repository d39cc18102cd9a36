import { readTimeMarks, type TimeMarks } from '../db/clock-rule-store.ts';
import type { Cells, Read } from '../db/reads.ts';
import { type Bindings, type HotTransaction, insertMany, runHot } from '../db/sql.ts';
import type { NonceClaim } from './ports.ts';
import { nonceRows } from './rows-store.ts';

export interface Claims {
  /** Which claims are a nonce's first, of a tenant that is there or not; of two in one batch the first is. */
  readonly won: readonly boolean[];
  /** Of a moment at which no other node could forget one of these nonces any more. */
  readonly marks: TimeMarks;
}

const idOf = (kid: string, nonce: string): string => `${kid}|${nonce}`;

/** A claim is a row: another node that has the same nonce waits for this transaction. */
export async function claimRows(tx: HotTransaction, claims: readonly NonceClaim[]): Promise<Claims> {
  const head = 'INSERT INTO nonces (kid, nonce, dated_at)';
  const tail = 'ON CONFLICT DO NOTHING RETURNING kid, nonce';
  const claimed = await insertMany<{ kid: string; nonce: string }>(tx, head, nonceRows(claims), tail);
  const free = new Set(claimed.map(({ kid, nonce }) => idOf(kid, nonce)));
  const won = claims.map(({ kid, nonce }) => free.delete(idOf(kid, nonce)));
  // After the claims: what another node forgets meanwhile, they waited for.
  const kids = claims.map(({ kid }) => kid);
  const marks = await readTimeMarks(tx, kids);
  for (const [i, claim] of claims.entries()) {
    if (won[i] && !isOfTenant(claim, marks))
      await runHot(tx, 'DELETE FROM nonces WHERE kid = ? AND nonce = ?', [claim.kid, claim.nonce]);
  }
  return { won, marks };
}

/** Whether the tenant of the bundle is there, and not another that was made under its kid since. */
export const isOfTenant = ({ kid, since }: NonceClaim, marks: TimeMarks): boolean =>
  marks.since(kid) === since;

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
