import type { ConsentTenant } from '../../consent/tenant.ts';
import { contestContext } from '../../keys/contexts.ts';

/** What the person and the reviewers wrote, encrypted under the tenant's own key and bound to its contest. */
export interface Texts {
  readonly statement: string | null;
  readonly question: string | null;
  readonly reason: string | null;
  readonly proposedReason: string | null;
  /** What the person replied to the question. */
  readonly answer: string | null;
  /** Where the person may be written to. */
  readonly email: string | null;
  /** Encrypted too, so that no hash of another case opens this one. */
  readonly caseHash: string | null;
  /** Why an answer takes longer. */
  readonly extensionReason: string | null;
  /** Questions answered before the last one was asked. */
  readonly earlier: readonly Exchange[];
}

export interface Exchange {
  readonly question: string;
  readonly answer: string;
}

export const NO_TEXTS: Texts = {
  statement: null,
  question: null,
  reason: null,
  proposedReason: null,
  answer: null,
  email: null,
  caseHash: null,
  extensionReason: null,
  earlier: [],
};

/** In the order in which a row holds them; older ciphertexts lack the later texts. */
const TEXTS = ['statement', 'question', 'reason', 'proposedReason', 'answer', 'email', 'caseHash'] as const;

/** After `earlier`, where rows without it end. */
const LAST = 'extensionReason' as const;

export type ContestTexts = ReturnType<typeof contestTextsOf>;

/** Under the key that also wraps the keys of principals and the messages that wait. */
export function contestTextsOf(tenantOf: (kid: string) => Pick<ConsentTenant, 'wrapper'> | undefined) {
  return {
    /** Null when nobody wrote anything. @throws for a tenant whose key is not known: nothing is written in the clear */
    encrypt(kid: string, contestId: string, texts: Texts): string | null {
      if ([...TEXTS, LAST].every((name) => texts[name] === null)) return null;
      const tenant = tenantOf(kid);
      if (!tenant) throw new Error('a contest of no tenant');
      const text = JSON.stringify([...TEXTS.map((name) => texts[name]), texts.earlier, texts[LAST]]);
      return tenant.wrapper.wrap(Buffer.from(text), contestContext(kid, contestId));
    },
    /** None for a tenant whose key is not known. @throws {WrongMasterKey} when it was encrypted with another key */
    decrypt(kid: string, contestId: string, ciphertext: string): Texts {
      const tenant = tenantOf(kid);
      if (!tenant) return NO_TEXTS;
      const text = tenant.wrapper.unwrap(ciphertext, contestContext(kid, contestId)).toString();
      const stored = JSON.parse(text) as (string | null)[];
      const texts = TEXTS.map((name, i): [string, string | null] => [name, stored[i] ?? null]);
      const earlier = (stored as unknown[])[TEXTS.length] as Texts['earlier'] | undefined;
      const last = stored[TEXTS.length + 1] ?? null;
      return {
        ...NO_TEXTS,
        ...(Object.fromEntries(texts) as Partial<Texts>),
        earlier: earlier ?? [],
        [LAST]: last,
      };
    },
  };
}
