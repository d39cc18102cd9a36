import type { Database } from '../db/db.ts';
import { BrokenLog } from '../db/line-log.ts';
import { consistencyProof, rootAt } from '../ledger/merkle.ts';
import type { NoteSigner, VerifierKey } from '../ledger/note.ts';
import { type Checkpoint, signCheckpoint, signedCheckpoint } from '../ledger/note.ts';
import { verifyConsistency } from '../ledger/verify.ts';
import { type Clock, HOUR, SECOND } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import type { CheckpointBook, KeptCheckpoint } from './checkpoint-files.ts';
import { putCheckpoint } from './checkpoint-store.ts';
import type { EntryCode, EntryMacs } from './entries.ts';
import { checkNewEntries, LogDamaged, type LogHead, makeHashReader, readHead } from './entries.ts';

/** Signs checkpoints, and only such as extend all that this node has signed or seen before. */

export interface LogKeys {
  readonly signer: NoteSigner;
  readonly stateMac: EntryMacs;
}

export interface WitnessPolicy {
  readonly witnesses: readonly { readonly key: VerifierKey; readonly url: string }[];
  /** How many of them make a checkpoint a witnessed one. */
  readonly least: number;
}

export interface CheckpointDeps {
  readonly database: Database;
  readonly book: CheckpointBook;
  readonly keysOf: (kid: string) => LogKeys | undefined;
  readonly clock: Clock;
  /** GPD_WITNESSES; none where nobody asks for witnessed checkpoints. */
  readonly witnesses?: WitnessPolicy;
}

export type CheckpointCode = 'checkpoint-missing' | 'checkpoint-not-extended' | 'vkey-changed' | EntryCode;

/** Nothing is signed: 503 until an operator has looked; housekeeping and doctor name the log. */
export class NotSigned extends Refusal {
  readonly problem: CheckpointCode;
  /** For operators: it names files. */
  readonly why: string;

  constructor(problem: CheckpointCode, why: string) {
    super('unavailable', { headers: { 'retry-after': '60' } });
    this.name = 'NotSigned';
    this.problem = problem;
    this.why = why;
  }
}

export type Signed = Pick<KeptCheckpoint, 'text' | 'size' | 'root' | 'signedAt'>;
type Tree = Pick<Checkpoint, 'size' | 'root'>;

const CHECKPOINT_EVERY_MS = SECOND;

export async function isExtended(database: Database, kid: string, older: Tree | null, newer: Tree) {
  const reader = makeHashReader(database, kid);
  try {
    if (older === null || older.size === 0) return (await rootAt(newer.size, reader)).equals(newer.root);
    if (older.size > newer.size) return false;
    const proof = await consistencyProof(older.size, newer.size, reader);
    return verifyConsistency(older.size, newer.size, proof, older.root, newer.root);
  } catch (error) {
    if (error instanceof LogDamaged) return false;
    throw error;
  }
}

async function requireExtended(
  { database }: Pick<CheckpointDeps, 'database'>,
  kid: string,
  older: Tree | null,
  newer: Tree,
): Promise<void> {
  if (await isExtended(database, kid, older, newer)) return;
  const said = `the log of ${newer.size} entries does not extend the one of ${older?.size ?? 0} that was signed`;
  throw new NotSigned('checkpoint-not-extended', said);
}

/** The checkpoint in the head of the log, which another node may have signed. */
function notedIn(head: LogHead, vkey: string): Signed | null {
  if (!head.checkpoint) return null;
  const checkpoint = signedCheckpoint(head.checkpoint.text, vkey);
  if (checkpoint) return { ...head.checkpoint, ...checkpoint };
  const why = 'the stored checkpoint is not signed by the key of this log';
  throw new NotSigned('checkpoint-not-extended', why);
}

/**
 * May a log have no line in checkpoints.log? On PostgreSQL, where the node is new or has not seen this log yet. An SQLite file has one
 * node, which wrote a line before the first entry: if it is missing, it was removed.
 */
const mayBegin = ({ database }: Pick<CheckpointDeps, 'database'>, noted: Signed | null): boolean =>
  database.kind === 'postgres' && noted !== null;

type Base = NonNullable<Awaited<ReturnType<typeof baseOf>>>;

async function lastOf({ book }: Pick<CheckpointDeps, 'book'>, vkey: string): Promise<KeptCheckpoint | null> {
  try {
    return await book.last(vkey);
  } catch (error) {
    if (error instanceof BrokenLog) throw new NotSigned('checkpoint-missing', error.message);
    throw error;
  }
}

/**
 * Reads alone, for the signer, verify and doctor.
 * @returns null: no such log; `last` is what the next checkpoint has to extend, null on a node that has not seen the log yet; `noted`
 * was signed by another node since, null where there is no newer one. @throws {NotSigned}
 */
export async function baseOf(
  deps: Pick<CheckpointDeps, 'database' | 'book'>,
  kid: string,
  { vkey, name }: NoteSigner,
) {
  // Before the head: another process may append entries and sign them meanwhile.
  const last = await lastOf(deps, vkey);
  const head = await readHead(deps.database, kid);
  if (!head) return null;
  if (head.vkey !== vkey || head.origin !== name)
    throw new NotSigned('vkey-changed', 'the stored verifier key is not the one of the log');
  const noted = notedIn(head, vkey);
  if (last === null && !mayBegin(deps, noted))
    throw new NotSigned('checkpoint-missing', `checkpoints.log has no line of the log of ${kid}`);
  const newer = noted !== null && noted.size > (last?.size ?? 0) ? noted : null;
  if (newer) await requireExtended(deps, kid, last, newer);
  if (noted && last && noted.size === last.size && !noted.root.equals(last.root))
    throw new NotSigned('checkpoint-not-extended', `two checkpoints of ${last.size} entries were signed`);
  await requireExtended(deps, kid, newer ?? last, head);
  return { head, last, noted: newer };
}

/** Only what came since the last checkpoint: what that one covers was looked at when it was signed. */
async function requireAuthentic(deps: CheckpointDeps, kid: string, { stateMac }: LogKeys, base: Base) {
  const from = (base.noted ?? base.last)?.size ?? 0;
  const problems = await checkNewEntries(deps.database, kid, { from, to: base.head.size, macs: stateMac });
  // A clock that was wrong once must not end the signing: verify and doctor report it.
  const [problem] = problems.filter(({ code }) => code !== 'time-out-of-order');
  if (problem) throw new NotSigned(problem.code, problem.what);
}

/** Another node's checkpoint is kept here too. Null: another process kept one meanwhile. */
async function keepNoted(deps: CheckpointDeps, kid: string, vkey: string, { last, noted }: Base) {
  if (!noted) return last;
  return (await deps.book.keep({ kid, vkey, ...noted }, last)) ? deps.book.last(vkey) : null;
}

/** The clock that signed may be ahead of this one: it is not recent for as long as that was. */
const isRecent = ({ clock }: CheckpointDeps, { signedAt }: Signed, maxAge: number): boolean =>
  Math.abs(clock() - signedAt) < maxAge;

/** What this node and the head have already, where that is recent: most calls end here. */
async function recentCheckpoint(
  deps: CheckpointDeps,
  kid: string,
  vkey: string,
  { atLeast, maxAge }: { readonly atLeast: number; readonly maxAge: number },
): Promise<KeptCheckpoint | null> {
  const last = await lastOf(deps, vkey);
  if (!last || last.size < atLeast || !isRecent(deps, last, maxAge)) return null;
  const head = await readHead(deps.database, kid);
  return head?.checkpoint?.text === last.text && last.size <= head.size ? last : null;
}

/**
 * A checkpoint over at least so many entries; it is as old as `maxAge` where none of them asks for a newer one.
 * @returns null: no such tenant. @throws {NotSigned}
 */
export async function currentCheckpoint(
  deps: CheckpointDeps,
  kid: string,
  atLeast: number,
  maxAge = CHECKPOINT_EVERY_MS,
): Promise<Signed | null> {
  for (;;) {
    const keys = deps.keysOf(kid);
    if (!keys) return null;
    const { signer } = keys;
    const recent = await recentCheckpoint(deps, kid, signer.vkey, { atLeast, maxAge });
    if (recent) return recent;
    const base = await baseOf(deps, kid, signer);
    if (!base) return null;
    const { head } = base;
    const last = await keepNoted(deps, kid, signer.vkey, base);
    if (base.noted && !last) continue;
    const covers =
      last !== null && last.size >= atLeast && (isRecent(deps, last, maxAge) || last.size === head.size);
    const { size, root } = head;
    if (!covers) await requireAuthentic(deps, kid, keys, base);
    const next = covers
      ? last
      : { text: signCheckpoint(size, root, signer), size, root, signedAt: deps.clock() };
    if (!covers && !(await deps.book.keep({ kid, vkey: signer.vkey, ...next }, last))) continue;
    if (head.checkpoint?.text === next.text) return next;
    // Else some node has written another one of this moment: use that one.
    if (await deps.database.transaction((tx) => putCheckpoint(tx, kid, next, head.checkpoint))) return next;
  }
}

/** At least one an hour of a log with new entries, asked for or not; those of other nodes are taken over. */
export async function keepCheckpoints(deps: CheckpointDeps, kid: string): Promise<void> {
  await currentCheckpoint(deps, kid, 0, HOUR);
}
