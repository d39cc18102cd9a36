import type { Database } from '../db/engine.ts';
import { inclusionProof } from '../ledger/merkle.ts';
import {
  encodeEntryBundle,
  encodeHashTile,
  formatTlogProof,
  parseTilePath,
  tileSpan,
} from '../ledger/tiles.ts';
import { HOUR, MINUTE } from '../lib/clock.ts';
import type { Job, Moment } from '../lib/jobs.ts';
import type { Installation } from '../tenants/directory.ts';
import { anchorAudit, anchorVerdicts } from './anchors-store.ts';
import type { CheckpointBook } from './checkpoint-files.ts';
import {
  type CheckpointDeps,
  currentCheckpoint,
  keepCheckpoints,
  type Signed,
} from './checkpoint-service.ts';
import { thinCheckpoints } from './checkpoint-store.ts';
import { COSIGN_JOB, lastWitnessed } from './cosign-service.ts';
import { createHashReader, entryLines, readEntries, readHead } from './entries-store.ts';
import type { EntryMacs } from './problems.ts';

/** Answers questions about a tenant's log: checkpoints, proofs, tiles. No consent check depends on it. */

export interface LogService {
  /**
   * A signed note over the head; signed again at most once a second. Null: no such tenant.
   * @throws {NotSigned}
   */
  checkpoint(kid: string): Promise<string | null>;
  /**
   * A signed note over every entry that exists now, with their number. Null: no such tenant.
   * @throws {NotSigned}
   */
  lastCheckpoint(kid: string): Promise<Signed | null>;
  /** The log's verifier key. Null: no such tenant. */
  vkey(kid: string): Promise<string | null>;
  /**
   * `c2sp.org/tlog-proof@v1` with the entry inside; a checkpoint is signed when none covers it. Null: no such
   * entry.
   * @throws {NotSigned}
   */
  proof(kid: string, seq: number): Promise<string | null>;
  /** The bytes of `tile/…` as C2SP tlog-tiles. Null: the log does not have it. */
  tile(kid: string, path: string): Promise<Buffer | null>;
  /** All entries, a line of JSON each. */
  exportLines(kid: string): AsyncIterable<string>;
}

/** A witnessed checkpoint is served instead of a newer one for this long. */
const WITNESSED_MS = 5 * MINUTE;

export function createLogService(deps: CheckpointDeps): LogService {
  const { database } = deps;
  return {
    async checkpoint(kid) {
      const last = await currentCheckpoint(deps, kid, 0);
      const witnessed = last && (await lastWitnessed(deps, kid, 0));
      // When no witness can be reached, the log continues without them.
      const isRecent = witnessed && last.signedAt - witnessed.signedAt < WITNESSED_MS;
      return (isRecent ? witnessed : last)?.text ?? null;
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
      const hashes = await inclusionProof(seq, covering.size, createHashReader(database, kid));
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
      return encodeHashTile(await createHashReader(database, kid).read(tile.level, span.start, span.end));
    },
    exportLines: (kid) => entryLines({ read: database.longRead }, kid),
  };
}

type Anchor = (database: Database, kid: string, until: number, macs?: EntryMacs) => Promise<number>;

/** @param cosign asks the witnesses for the last checkpoint of a tenant */
export function logJobs(
  services: Pick<Installation, 'database' | 'clock' | 'tenantOf'> & { readonly book: CheckpointBook },
  cosign: (kid: string) => Promise<void>,
): readonly Job[] {
  const { database, book, tenantOf } = services;
  const anchorWith =
    (anchor: Anchor) =>
    (kid: string, { until }: Moment) =>
      anchor(database, kid, until, tenantOf(kid)?.stateMac);
  return [
    { name: 'seal-verdicts', every: MINUTE, each: anchorWith(anchorVerdicts) },
    { name: 'seal-audit', every: MINUTE, each: anchorWith(anchorAudit) },
    {
      name: 'keep-checkpoints',
      every: MINUTE,
      each: (kid) => keepCheckpoints(services, kid),
    },
    { name: COSIGN_JOB, every: MINUTE, each: cosign },
    {
      name: 'thin-checkpoints',
      every: HOUR,
      async run({ until }) {
        await thinCheckpoints(database, until);
        await book.thin(until);
      },
    },
  ];
}
