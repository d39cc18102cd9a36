import type { Database } from '../../db/engine.ts';
import type { EvidenceKey } from '../../keys/evidence-key.ts';
import { consistencyProof, inclusionProof } from '../../ledger/merkle.ts';
import { formatVkey, type NoteSigner, signNote } from '../../ledger/note.ts';
import { formatTlogProof } from '../../ledger/tiles.ts';
import { DAY } from '../../lib/clock.ts';
import type { WitnessPolicy } from '../../log/checkpoint-service.ts';
import { dailyCheckpoints } from '../../log/cosign-service.ts';
import { createHashReader, readEntries } from '../../log/entries-store.ts';
import type { Selection } from './parts-service.ts';
import type { Period } from './period.ts';

/** The parts of a file of evidence that bind its entries to what the log signed. */

export interface ProofSource {
  readonly database: Database;
  readonly kid: string;
  readonly signer: NoteSigner;
  readonly witnesses: WitnessPolicy | undefined;
  readonly period: Period;
  /** The number of entries under the newest checkpoint. */
  readonly size: number;
}

export interface NamedText {
  readonly name: string;
  readonly text: string;
}

export interface SignedHead {
  readonly text: string;
  readonly size: number;
}

/** The last checkpoint of each day of the period, and the newest one, which covers all entries. */
export async function listCheckpointsOf(
  source: ProofSource,
  newest: SignedHead,
): Promise<readonly SignedHead[]> {
  const { database, kid, witnesses, period, size } = source;
  const range = { from: period.from, to: period.to + DAY, size };
  const daily = await dailyCheckpoints({ database, ...(witnesses && { witnesses }) }, kid, range);
  // On another node the row may not be there yet.
  return daily.at(-1)?.size === size ? daily : [...daily, newest];
}

/** A note over the export key that the log's key signed: one trust anchor is enough. */
function endorseKey(signer: NoteSigner, { thumbprint, jwk }: EvidenceKey): string {
  return signNote(`gpd/export-key/v1\n${signer.name}\n${thumbprint}\n${jwk.x} ${jwk.y}\n`, signer);
}

export function checkpointParts(
  { signer, witnesses }: ProofSource,
  key: EvidenceKey,
  checkpoints: readonly SignedHead[],
): readonly NamedText[] {
  const keys = (witnesses?.witnesses ?? []).map(({ key: witness }) => `${formatVkey(witness)}\n`);
  return [
    ...checkpoints.map(({ size, text }) => ({ name: `checkpoints/${size}.txt`, text })),
    { name: 'checkpoints/export-key.txt', text: endorseKey(signer, key) },
    { name: 'checkpoints/vkey.txt', text: `${signer.vkey}\n` },
    ...(keys.length > 0 ? [{ name: 'checkpoints/witnesses.txt', text: keys.join('') }] : []),
  ];
}

/**
 * `proofs/`: each checkpoint extends the one before (the request of C2SP tlog-witness), and each entry is in
 * the log (C2SP tlog-proof). Of a run of entries the proofs of its first and its last are enough.
 */
export async function* proofParts(
  { database, kid }: ProofSource,
  checkpoints: readonly SignedHead[],
  { run, singles }: Selection,
): AsyncGenerator<NamedText> {
  const hashes = createHashReader(database, kid);
  for (const [i, { size, text }] of checkpoints.entries()) {
    const before = checkpoints[i - 1];
    if (!before || before.size === size) continue;
    const proof = await consistencyProof(before.size, size, hashes);
    const lines = [`old ${before.size}`, ...proof.map((hash) => hash.toString('base64'))];
    yield { name: `proofs/${before.size}-${size}.consistency`, text: `${lines.join('\n')}\n\n${text}` };
  }
  const newest = checkpoints.at(-1);
  const proven = new Set([...singles, ...(run ? [run.first, run.last] : [])]);
  for (const seq of [...proven].sort((a, b) => a - b)) {
    const [stored] = await readEntries(database, kid, seq, 1);
    if (!newest || stored?.seq !== seq) throw new Error(`entry ${seq} is missing from the log of ${kid}`);
    const path = await inclusionProof(seq, newest.size, hashes);
    const entry = Buffer.from(stored.entry);
    const proof = formatTlogProof({ entry, index: seq, hashes: path, checkpoint: newest.text });
    yield { name: `proofs/${seq}.tlog-proof`, text: proof };
  }
}
