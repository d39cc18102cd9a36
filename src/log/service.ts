import { inclusionProof } from '../ledger/proofs.ts';
import { encodeEntryBundle, encodeHashTile } from '../ledger/tile-bytes.ts';
import { parseTilePath, tileSpan } from '../ledger/tile-path.ts';
import { formatTlogProof } from '../ledger/tlog-proof.ts';
import { MINUTE } from '../lib/clock.ts';
import { type CheckpointDeps, currentCheckpoint } from './checkpoint-service.ts';
import { lastWitnessed } from './cosign-service.ts';
import { entryLines, makeHashReader, readEntries, readHead } from './read-store.ts';

/** What a tenant's log tells: checkpoints, proofs, tiles. Nothing here is on the way of a check. */

export interface LogService {
  /** A signed note over the head; signed anew at most once a second. Null: no such tenant. */
  checkpoint(kid: string): Promise<string | null>;
  /** The same over every entry that there is now, and how many those are. */
  lastCheckpoint(kid: string): Promise<{ readonly text: string; readonly size: number } | null>;
  vkey(kid: string): Promise<string | null>;
  /** `c2sp.org/tlog-proof@v1` with the entry inside; a checkpoint is signed when none covers it. */
  proof(kid: string, seq: number): Promise<string | null>;
  /** The bytes of `tile/…` as C2SP tlog-tiles; null for a tile that the log does not have. */
  tile(kid: string, path: string): Promise<Buffer | null>;
  exportLines(kid: string): AsyncGenerator<string>;
}

/** So long a witnessed checkpoint is told in place of a newer one that is not. */
const WITNESSED_MS = 5 * MINUTE;

export function makeLogService(deps: CheckpointDeps): LogService {
  const { database } = deps;
  return {
    async checkpoint(kid) {
      const last = await currentCheckpoint(deps, kid, 0);
      const witnessed = last && (await lastWitnessed(deps, kid, 0));
      // Where the witnesses are away, the log goes on without them.
      const isFresh = witnessed && last.signedAt - witnessed.signedAt < WITNESSED_MS;
      return (isFresh ? witnessed : last)?.text ?? null;
    },
    async lastCheckpoint(kid) {
      const head = await readHead(database, kid);
      return head && currentCheckpoint(deps, kid, head.size);
    },
    vkey: async (kid) => (await readHead(database, kid))?.vkey ?? null,
    async proof(kid, seq) {
      const [stored] = await readEntries(database, kid, seq, 1);
      if (stored?.seq !== seq) return null;
      const covering =
        (await lastWitnessed(deps, kid, seq + 1)) ?? (await currentCheckpoint(deps, kid, seq + 1));
      if (!covering) return null;
      const hashes = await inclusionProof(seq, covering.size, makeHashReader(database, kid));
      return formatTlogProof({
        entry: Buffer.from(stored.entry),
        index: seq,
        hashes,
        checkpoint: covering.text,
      });
    },
    async tile(kid, path) {
      const tile = parseTilePath(path);
      const head = tile && (await readHead(database, kid));
      const span = tile && head ? tileSpan(tile, head.size) : null;
      if (!tile || !span) return null;
      if (tile.level === 'entries') {
        const entries = await readEntries(database, kid, span.start, span.end - span.start);
        return encodeEntryBundle(entries.map(({ entry }) => Buffer.from(entry)));
      }
      return encodeHashTile(await makeHashReader(database, kid).read(tile.level, span.start, span.end));
    },
    exportLines: (kid) => entryLines(database, kid),
  };
}
