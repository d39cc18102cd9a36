import { equalBytes, hmacSha256Text } from '../lib/crypto.ts';
import type { ConsentChoice, Given } from '../schema/consent.ts';
import type { ConsentPolicy, Purpose } from './purposes.ts';

/**
 * What a check is answered from carries a MAC under the tenant's key: who writes the database without it cannot make a yes
 * (ADR 0042). Lines of a text, in one order; no field that gpd writes has a line break, so two rows never have one text.
 */

/** The last choice of a person about one purpose. */
export interface StateRow {
  readonly choice: ConsentChoice;
  readonly policyVersion: number;
  /** Epoch milliseconds; null for everything but a grant. */
  readonly expiresAt: number | null;
  readonly at: number;
  /** The place in the tenant's log. */
  readonly seq: number;
  /** Lower-case hex of SHA-256(0x00 ‖ entry). */
  readonly hash: string;
  /** The grant was made over a GPC signal. */
  readonly overGpc: boolean;
  /** Who gave the grant; null: no verdict rode on it. */
  readonly given: Given | null;
  /** The last entry `consent.doubted` of this grant. */
  readonly doubtSeq: number | null;
}

export interface PrincipalRow {
  readonly gpc: boolean;
  /** As the column has it. */
  readonly except: string | null;
  readonly erasedAt: number | null;
}

interface Terms {
  readonly purposes: readonly Purpose[];
  readonly policies: readonly ConsentPolicy[];
}

/** The MACs of one tenant. */
export type StateMac = ReturnType<typeof createStateMac>;

export function createStateMac(kid: string, key: Uint8Array) {
  const mac = (text: string): string => hmacSha256Text(key, text);
  return {
    ofState: (
      principal: string,
      purpose: string,
      { choice, policyVersion, expiresAt, at, seq, hash, overGpc, given, doubtSeq }: StateRow,
    ) =>
      mac(
        `state\n${kid}\n${principal}\n${purpose}\n${choice}\n${policyVersion}\n${expiresAt}\n${at}\n${seq}\n${hash}\n${overGpc}\n${given}\n${doubtSeq}`,
      ),
    ofPrincipal: (principal: string, { gpc, except, erasedAt }: PrincipalRow) =>
      mac(`principal\n${kid}\n${principal}\n${gpc}\n${except}\n${erasedAt}`),
    /** An entry of the log, at its place. */
    ofEntry: (seq: number, hash: string) => mac(`entry\n${kid}\n${seq}\n${hash}`),
    /** What is kept of an Idempotency-Key once its person is erased: it names nobody. */
    ofRetry: (caller: string, idempotencyKey: string) => mac(`retry\n${kid}\n${caller}\n${idempotencyKey}`),
    ofTerms({ purposes, policies }: Terms) {
      const sorted = [...purposes].sort((a, b) => (a.id < b.id ? -1 : 1));
      const rows = [
        sorted.map((one) => [one.id, one.title, one.description, one.lawfulBasis, one.gpc, one.ttlDays]),
        [...policies]
          .sort((a, b) => a.version - b.version)
          .map(({ version, sha256, material, publishedAt }) => [version, sha256, material, publishedAt]),
      ];
      return mac(`terms\n${kid}\n${JSON.stringify(rows)}`);
    },
  };
}

/** Constant-time: a writer of the database may time its guesses. Without a MAC nothing fits. */
export const macFits = (stored: unknown, computed: string): boolean =>
  typeof stored === 'string' && equalBytes(Buffer.from(stored, 'latin1'), Buffer.from(computed, 'latin1'));
