import { equalBytes, hmacSha256Text } from '../lib/crypto.ts';
import type { ConsentChoice, Given } from '../schema/consent.ts';
import type { ConsentPolicy, DefinedPurpose } from './purposes.ts';

/**
 * Rows from which a consent check is answered have a MAC under the tenant's key, so that a writer
 * of the database without that key cannot forge a yes (ADR 0042). The MAC is over lines of text in
 * a fixed order. No field contains a line break, so two different rows never have the same text.
 */

/** The last choice of a person about one purpose. */
export interface StateRow {
  readonly choice: ConsentChoice;
  readonly policyVersion: number;
  /** Epoch milliseconds; null for everything but a grant. */
  readonly expiresAt: number | null;
  readonly at: number;
  /** The number of the entry in the tenant's log. */
  readonly seq: number;
  /** Lower-case hex of SHA-256(0x00 ‖ entry). */
  readonly hash: string;
  /** The person granted this although their browser sent Global Privacy Control. */
  readonly overGpc: boolean;
  /** The class of the visitor who gave the grant; null if no verdict came with it. */
  readonly given: Given | null;
  /** The number of the last `consent.doubted` entry about this grant. */
  readonly doubtSeq: number | null;
  /** The entry that defined the purpose in the words of this choice; null: no entry did. */
  readonly definition: number | null;
}

export interface PrincipalRow {
  readonly gpc: boolean;
  /** The text of the column, unparsed. */
  readonly except: string | null;
  readonly erasedAt: number | null;
  /**
   * The account with which this principal is joined, its own reference for the account itself; null: it is
   * joined with nobody.
   */
  readonly account: string | null;
  /** The text of the column: purposes that stay refused until a grant. */
  readonly withheld: string | null;
}

interface Terms {
  readonly purposes: readonly DefinedPurpose[];
  readonly policies: readonly ConsentPolicy[];
}

/** The MACs of one tenant. */
export type StateMac = ReturnType<typeof createStateMac>;

export function createStateMac(kid: string, key: Uint8Array) {
  const computeMac = (text: string): string => hmacSha256Text(key, text);
  return {
    ofState: (
      principal: string,
      purpose: string,
      { choice, policyVersion, expiresAt, at, seq, hash, overGpc, given: givenBy, ...rest }: StateRow,
    ) =>
      computeMac(
        `state\n${kid}\n${principal}\n${purpose}\n${choice}\n${policyVersion}\n${expiresAt}\n${at}\n${seq}\n${hash}\n${overGpc}\n${givenBy}\n${rest.doubtSeq}\n${rest.definition}`,
      ),
    ofPrincipal: (principal: string, { gpc, except, erasedAt, account, withheld }: PrincipalRow) =>
      computeMac(`principal\n${kid}\n${principal}\n${gpc}\n${except}\n${erasedAt}\n${account}\n${withheld}`),
    /** Binds an entry of the log to its place. */
    ofEntry: (seq: number, hash: string) => computeMac(`entry\n${kid}\n${seq}\n${hash}`),
    /** Replaces an Idempotency-Key when its person is erased, so that the stored value identifies nobody. */
    ofRetry: (caller: string, idempotencyKey: string) =>
      computeMac(`retry\n${kid}\n${caller}\n${idempotencyKey}`),
    ofTerms({ purposes, policies }: Terms) {
      const sorted = [...purposes].sort((a, b) => (a.id < b.id ? -1 : 1));
      const rows = [
        sorted.map((one) => [
          ...[one.id, one.title, one.description, one.lawfulBasis, one.gpc, one.ttlDays, one.banner],
          ...[one.definition, one.materialSince, one.optOutUntil, one.askUntil],
        ]),
        [...policies]
          .sort((a, b) => a.version - b.version)
          .map(({ version, sha256, material, publishedAt }) => [version, sha256, material, publishedAt]),
      ];
      return computeMac(`terms\n${kid}\n${JSON.stringify(rows)}`);
    },
  };
}

/**
 * Compares in constant time, because a writer of the database
 * could time guesses. A row without a MAC is never valid.
 */
export const isMacValid = (stored: unknown, computed: string): boolean =>
  typeof stored === 'string' && equalBytes(Buffer.from(stored, 'latin1'), Buffer.from(computed, 'latin1'));
