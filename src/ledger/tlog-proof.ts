/**
 * c2sp.org/tlog-proof@v1: all that is needed to check one entry offline. The format holds `extra` to be opaque and not
 * authenticated; here it is the entry itself, which the proof does cover.
 */

const FIRST_LINE = 'c2sp.org/tlog-proof@v1';

export interface TlogProof {
  readonly entry: Buffer;
  /** The seq of the entry. */
  readonly index: number;
  /** Audit path, the leaf's sibling first. */
  readonly hashes: readonly Buffer[];
  /** The signed note, verbatim. */
  readonly checkpoint: string;
}

export function formatTlogProof({ entry, index, hashes, checkpoint }: TlogProof): string {
  const path = hashes.map((hash) => hash.toString('base64'));
  const lines = [FIRST_LINE, `extra ${entry.toString('base64')}`, `index ${index}`, ...path];
  return `${lines.join('\n')}\n\n${checkpoint}`;
}
