import { contestContext } from '../../keys/contexts.ts';
import { makeMasterKey } from '../../keys/master-key.ts';
import type { Random } from '../../lib/random.ts';

/** What the person and the reviewers wrote, sealed under the tenant's own key and bound to its contest. */
export interface Words {
  readonly statement: string | null;
  readonly question: string | null;
  readonly reason: string | null;
  readonly proposedReason: string | null;
}

export const NO_WORDS: Words = { statement: null, question: null, reason: null, proposedReason: null };

export interface ContestWords {
  /** Null when nobody wrote anything. @throws for a tenant whose key is not known: nothing is written in the clear */
  seal(kid: string, contestId: string, words: Words): string | null;
  /** None for a tenant whose key is not known. @throws {WrongMasterKey} when it was sealed otherwise */
  open(kid: string, contestId: string, sealed: string): Words;
}

export function makeContestWords(
  keyOf: (kid: string) => Uint8Array | undefined,
  random: Random,
): ContestWords {
  return {
    seal(kid, contestId, words) {
      if (Object.values(words).every((text) => text === null)) return null;
      const key = keyOf(kid);
      if (!key) throw new Error('a contest of no tenant');
      const { statement, question, reason, proposedReason } = words;
      const text = JSON.stringify([statement, question, reason, proposedReason]);
      return makeMasterKey(key, random).wrap(Buffer.from(text), contestContext(kid, contestId));
    },
    open(kid, contestId, sealed) {
      const key = keyOf(kid);
      if (!key) return NO_WORDS;
      const text = makeMasterKey(key, random).unwrap(sealed, contestContext(kid, contestId)).toString();
      const [statement, question, reason, proposedReason] = JSON.parse(text) as (string | null)[];
      return {
        statement: statement ?? null,
        question: question ?? null,
        reason: reason ?? null,
        proposedReason: proposedReason ?? null,
      };
    },
  };
}
