import type { Database } from '../db/engine.ts';
import { BrokenLog } from '../db/line-log.ts';
import { consistencyProof, rootAt } from '../ledger/merkle.ts';
import type { NoteSigner, VerifierKey } from '../ledger/note.ts';
import { type Checkpoint, signCheckpoint, signedCheckpoint } from '../ledger/note.ts';
import { verifyConsistency } from '../ledger/verify.ts';
import { type Clock, HOUR, SECOND } from '../lib/clock.ts';
import { Refusal, Unavailable } from '../lib/errors.ts';
import type { CheckpointBook, KeptCheckpoint } from './checkpoint-files.ts';
import { putCheckpoint } from './checkpoint-store.ts';
import { checkNewEntries, createHashReader, LogDamaged, type LogHead, readHead } from './entries-store.ts';
import type { EntryCode, EntryMacs } from './problems.ts';

/** Signs checkpoints, but only if they extend every checkpoint that this node has signed or seen. */

export interface LogKeys {
  readonly signer: NoteSigner;
  readonly stateMac: EntryMacs;
}

export interface WitnessPolicy {
  readonly witnesses: readonly { readonly key: VerifierKey; readonly url: string }[];
  /** This many cosignatures make a checkpoint a witnessed one. */
  readonly min: number;
}

export interface CheckpointDeps {
  readonly database: Database;
  readonly book: CheckpointBook;
  readonly keysOf: (kid: string) => LogKeys | undefined;
  readonly clock: Clock;
  /** GPD_WITNESSES; missing where no witnesses are configured. */
  readonly witnesses?: WitnessPolicy;
}

export type CheckpointCode = 'checkpoint-missing' | 'checkpoint-not-extended' | 'vkey-changed' | EntryCode;

/** Answered as 503 until an operator has looked; housekeeping and doctor name the log. */
export class NotSigned extends Refusal {
  readonly problem: CheckpointCode;
  /** Only for operators: it may name files. */
  readonly detail: string;

  constructor(problem: CheckpointCode, detail: string) {
    super('unavailable', { headers: { 'retry-after': '60' } });
    this.name = 'NotSigned';
    this.problem = problem;
    this.detail = detail;
  }
}

export type Signed = Pick<KeptCheckpoint, 'text' | 'size' | 'root' | 'signedAt'>;
type Tree = Pick<Checkpoint, 'size' | 'root'>;

const CHECKPOINT_EVERY_MS = SECOND;

export async function isExtended(database: Database, kid: string, older: Tree | null, newer: Tree) {
  const reader = createHashReader(database, kid);
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
  const detail = `the log of ${newer.size} entries does not extend the one of ${older?.size ?? 0} that was signed`;
  throw new NotSigned('checkpoint-not-extended', detail);
}

/** The checkpoint in the head of the log, which another node may have signed. */
function checkpointInHead(head: LogHead, vkey: string): Signed | null {
  if (!head.checkpoint) {
    if (head.checkpointSize === 0) return null;
    throw new NotSigned('checkpoint-missing', 'the head of the log has lost its checkpoint');
  }
  const checkpoint = signedCheckpoint(head.checkpoint.text, vkey);
  if (checkpoint) return { ...head.checkpoint, ...checkpoint };
  const detail = 'the stored checkpoint is not signed by the key of this log';
  throw new NotSigned('checkpoint-not-extended', detail);
}

/**
 * True if a log may lack a line in checkpoints.log: on PostgreSQL, when this node is new to the log. An
 * SQLite file has one node, which wrote a line before the first entry: a missing line was removed.
 */
const mayLackLine = (
  { database }: Pick<CheckpointDeps, 'database'>,
  headCheckpoint: Signed | null,
): boolean => database.kind === 'postgres' && headCheckpoint !== null;

type Base = NonNullable<Awaited<ReturnType<typeof baseOf>>>;

/**
 * Says what to do about a damaged file. Each line has a MAC of its installation, so a wrong first line may
 * mean another installation's file.
 */
export const explainBrokenBook = ({ message }: BrokenLog): string =>
  message.endsWith('line 1 was changed')
    ? `${message}, or this is another installation's log: put back the file, or the database and key, that belong together`
    : message;

async function readLast(
  { book }: Pick<CheckpointDeps, 'book'>,
  vkey: string,
): Promise<KeptCheckpoint | null> {
  try {
    return await book.last(vkey);
  } catch (error) {
    if (error instanceof BrokenLog) throw new NotSigned('checkpoint-missing', explainBrokenBook(error));
    throw error;
  }
}

/**
 * Finds the checkpoint that the next one has to extend, for the signer, verify and doctor. It only reads.
 * @returns null if there is no such log; `last` is null on a node that is new to the log; `newer` is a newer
 * checkpoint of another node, or null
 * @throws {NotSigned}
 */
export async function baseOf(
  deps: Pick<CheckpointDeps, 'database' | 'book'>,
  kid: string,
  { vkey, name }: NoteSigner,
) {
  // The book is read before the head: another process may append and sign entries meanwhile.
  const last = await readLast(deps, vkey);
  const head = await readHead(deps.database, kid);
  if (!head) return null;
  if (head.vkey !== vkey || head.origin !== name)
    throw new NotSigned('vkey-changed', 'the stored verifier key is not the one of the log');
  const headCheckpoint = checkpointInHead(head, vkey);
  if (last === null && !mayLackLine(deps, headCheckpoint))
    throw new NotSigned('checkpoint-missing', `checkpoints.log has no line of the log of ${kid}`);
  const newer = headCheckpoint !== null && headCheckpoint.size > (last?.size ?? 0) ? headCheckpoint : null;
  if (newer) await requireExtended(deps, kid, last, newer);
  if (headCheckpoint && last && headCheckpoint.size === last.size && !headCheckpoint.root.equals(last.root))
    throw new NotSigned('checkpoint-not-extended', `two checkpoints of ${last.size} entries were signed`);
  await requireExtended(deps, kid, newer ?? last, head);
  return { head, last, newer };
}

/** Checks only entries after the last checkpoint; the others were checked when that one was signed. */
async function requireAuthentic(deps: CheckpointDeps, kid: string, { stateMac }: LogKeys, base: Base) {
  const from = (base.newer ?? base.last)?.size ?? 0;
  const problems = await checkNewEntries(deps.database, kid, { from, to: base.head.size, macs: stateMac });
  // A clock that was wrong once must not stop the signing; verify and doctor report it.
  const [problem] = problems.filter(({ code }) => code !== 'time-out-of-order');
  if (problem) throw new NotSigned(problem.code, problem.what);
}

/**
 * Copies another node's newer checkpoint into this node's file.
 * @returns null if another process wrote one meanwhile
 */
async function keepNewer(deps: CheckpointDeps, kid: string, vkey: string, { last, newer }: Base) {
  if (!newer) return last;
  return (await deps.book.keep({ kid, vkey, ...newer }, last)) ? deps.book.last(vkey) : null;
}

/** This clock may be ahead of or behind the one that signed, so the distance counts. */
const isRecent = ({ clock }: CheckpointDeps, { signedAt }: Signed, maxAge: number): boolean =>
  Math.abs(clock() - signedAt) < maxAge;

/** @returns the checkpoint that this node and the head share, if it is recent: most calls end here */
async function recentCheckpoint(
  deps: CheckpointDeps,
  kid: string,
  vkey: string,
  { atLeast, maxAge }: { readonly atLeast: number; readonly maxAge: number },
): Promise<KeptCheckpoint | null> {
  const last = await readLast(deps, vkey);
  if (!last || last.size < atLeast || !isRecent(deps, last, maxAge)) return null;
  const head = await readHead(deps.database, kid);
  return head?.checkpoint?.text === last.text && last.size <= head.size ? last : null;
}

/**
 * Nodes with many writers overtake each other a few times in a row. A damaged head would be tried for ever.
 */
const TRIES = 20;
/** Another process stored a checkpoint meanwhile; the next try uses that one. */
const OVERTAKEN = Symbol('overtaken');

async function tryToSign(
  deps: CheckpointDeps,
  kid: string,
  keys: LogKeys,
  limits: { readonly atLeast: number; readonly maxAge: number },
): Promise<Signed | null | typeof OVERTAKEN> {
  const { signer } = keys;
  const recent = await recentCheckpoint(deps, kid, signer.vkey, limits);
  if (recent) return recent;
  const base = await baseOf(deps, kid, signer);
  if (!base) return null;
  const { head } = base;
  const last = await keepNewer(deps, kid, signer.vkey, base);
  if (base.newer && !last) return OVERTAKEN;
  const isSufficient =
    last !== null &&
    last.size >= limits.atLeast &&
    (isRecent(deps, last, limits.maxAge) || last.size === head.size);
  const { size, root } = head;
  if (!isSufficient) await requireAuthentic(deps, kid, keys, base);
  const next = isSufficient
    ? last
    : { text: signCheckpoint(size, root, signer), size, root, signedAt: deps.clock() };
  if (!isSufficient && !(await deps.book.keep({ kid, vkey: signer.vkey, ...next }, last))) return OVERTAKEN;
  if (head.checkpoint?.text === next.text) return next;
  const isStored = await deps.database.transaction((tx) => putCheckpoint(tx, kid, next, head.checkpoint));
  return isStored ? next : OVERTAKEN;
}

/**
 * A checkpoint over at least `atLeast` entries, at most `maxAge` old unless the log has no newer entries.
 * @returns null for an unknown tenant
 * @throws {NotSigned}
 * @throws {Unavailable} when others stored a checkpoint during each try
 */
export async function currentCheckpoint(
  deps: CheckpointDeps,
  kid: string,
  atLeast: number,
  maxAge = CHECKPOINT_EVERY_MS,
): Promise<Signed | null> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const keys = deps.keysOf(kid);
    if (!keys) return null;
    const signed = await tryToSign(deps, kid, keys, { atLeast, maxAge });
    if (signed !== OVERTAKEN) return signed;
  }
  throw new Unavailable('the head of the log changed with each try to store its checkpoint');
}

/** Makes at least one checkpoint an hour per log with new entries, and copies those of other nodes. */
export async function keepCheckpoints(deps: CheckpointDeps, kid: string): Promise<void> {
  await currentCheckpoint(deps, kid, 0, HOUR);
}
