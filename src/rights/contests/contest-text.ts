import type { ConsentTenant } from '../../consent/tenant.ts';
import { contestContext } from '../../keys/contexts.ts';

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

/** Under the key that also wraps the keys of principals and the messages that wait. */
export function contestWordsOf(
  tenantOf: (kid: string) => Pick<ConsentTenant, 'wrapper'> | undefined,
): ContestWords {
  return {
    seal(kid, contestId, words) {
      if (Object.values(words).every((text) => text === null)) return null;
      const tenant = tenantOf(kid);
      if (!tenant) throw new Error('a contest of no tenant');
      const { statement, question, reason, proposedReason } = words;
      const text = JSON.stringify([statement, question, reason, proposedReason]);
      return tenant.wrapper.wrap(Buffer.from(text), contestContext(kid, contestId));
    },
    open(kid, contestId, sealed) {
      const tenant = tenantOf(kid);
      if (!tenant) return NO_WORDS;
      const text = tenant.wrapper.unwrap(sealed, contestContext(kid, contestId)).toString();
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
