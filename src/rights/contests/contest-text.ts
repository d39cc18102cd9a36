import type { ConsentTenant } from '../../consent/tenant.ts';
import { contestContext } from '../../keys/contexts.ts';

/** In the order in which a row holds them. */
const ORDER = [
  'statement',
  /** What the reviewer asked the subject. */
  'question',
  'reason',
  'proposedReason',
  /** What the person replied to the question. */
  'answer',
  /** Where the person may be written to. */
  'email',
  /** Keyed hash of the case key; null: filed with an account. Encrypted too, so that no hash of another case opens this one. */
  'caseHash',
  /** Questions answered before the last one was asked. */
  'earlier',
  /** Why an answer takes longer. */
  'extensionReason',
] as const;

/** What the person and the reviewers wrote, encrypted under the tenant's own key and bound to its contest. */
export type Texts = Readonly<Record<Exclude<(typeof ORDER)[number], 'earlier'>, string | null>> & {
  readonly earlier: readonly { readonly question: string; readonly answer: string }[];
};

const NOTHING = Object.fromEntries(ORDER.map((name) => [name, null])) as Record<keyof Texts, null>;
export const NO_TEXTS: Texts = { ...NOTHING, earlier: [] };

export type ContestTexts = ReturnType<typeof contestTextsOf>;

/** Under the key that also wraps the keys of principals and the messages that wait. */
export function contestTextsOf(tenantOf: (kid: string) => Pick<ConsentTenant, 'wrapper'> | undefined) {
  return {
    /** Null when nobody wrote anything. @throws for a tenant whose key is not known: nothing is written in the clear */
    encrypt(kid: string, contestId: string, texts: Texts): string | null {
      if (ORDER.every((name) => name === 'earlier' || texts[name] === null)) return null;
      const tenant = tenantOf(kid);
      if (!tenant) throw new Error('a contest of no tenant');
      const text = JSON.stringify(ORDER.map((name) => texts[name]));
      return tenant.wrapper.wrap(Buffer.from(text), contestContext(kid, contestId));
    },
    /** None for a tenant whose key is not known. @throws {WrongMasterKey} when it was encrypted with another key */
    decrypt(kid: string, contestId: string, ciphertext: string): Texts {
      const tenant = tenantOf(kid);
      if (!tenant) return NO_TEXTS;
      const text = tenant.wrapper.unwrap(ciphertext, contestContext(kid, contestId)).toString();
      const stored = JSON.parse(text) as unknown[];
      return Object.fromEntries(ORDER.map((name, i) => [name, stored[i]])) as Texts;
    },
  };
}
