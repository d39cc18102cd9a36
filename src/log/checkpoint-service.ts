import type { Database } from '../db/engine.ts';
import { BrokenLog } from '../db/line-log.ts';
import { consistencyProof, rootAt } from '../ledger/merkle.ts';
import type { NoteSigner, VerifierKey } from '../ledger/note.ts';
import { type Checkpoint, signCheckpoint, signedCheckpoint } from '../ledger/note.ts';
import { verifyConsistency } from '../ledger/verify.ts';
import { type Clock, HOUR, SECOND } from '../lib/clock.ts';
import { Refusal, Unavailable } from '../lib/errors.ts';
import type { CheckpointBook, KeptCheckpoint } from './checkpoint-files.ts';
import { newestCheckpoint, putCheckpoint } from './checkpoint-store.ts';
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
  readonly tenantOf: (kid: string) => LogKeys | undefined;
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
  database: Database,
  kid: string,
  older: Tree | null,
  newer: Tree,
): Promise<void> {
  if (await isExtended(database, kid, older, newer)) return;
  const detail = `the log of ${newer.size} entries does not extend the one of ${older?.size ?? 0} that was signed`;
  throw new NotSigned('checkpoint-not-extended', detail);
}

/** Each line has a MAC of its installation, so a wrong first line may mean another installation's file. */
export const explainBrokenBook = ({ message }: BrokenLog): string =>
  message.endsWith('line 1 was changed')
    ? `${message}, or this is another installation's log: put back the file, or the database and key, that belong together`
    : message;

async function lastInFile({ book }: Pick<CheckpointDeps, 'book'>, vkey: string): Promise<Signed | null> {
  try {
    return await book.last(vkey);
  } catch (error) {
    if (error instanceof BrokenLog) throw new NotSigned('checkpoint-missing', explainBrokenBook(error));
    throw error;
  }
}

/** The newest row, which another node may have signed. @throws {NotSigned} */
async function newestInDatabase(database: Database, kid: string, vkey: string): Promise<Signed | null> {
  const stored = await newestCheckpoint(database, kid);
  if (!stored) return null;
  const checkpoint = signedCheckpoint(stored.text, vkey);
  if (checkpoint?.size === stored.size) return { ...stored, root: checkpoint.root };
  const detail = 'the stored checkpoint is not signed by the key of this log';
  throw new NotSigned('checkpoint-not-extended', detail);
}

/**
 * Reads a log with its signed checkpoints, and requires that each extends the one before: the last line of
 * this node's file, the newest row, the head. The signer, verify and doctor use it.
 * @returns null if there is no such log; `newest` is the checkpoint that the next one has to extend
 * @throws {NotSigned}
 */
export async function readSigned(
  { database, book }: Pick<CheckpointDeps, 'database' | 'book'>,
  kid: string,
  { vkey, name }: NoteSigner,
) {
  // The order matters, because another process may append and sign entries meanwhile.
  const inFile = await lastInFile({ book }, vkey);
  const inDatabase = await newestInDatabase(database, kid, vkey);
  const head = await readHead(database, kid);
  if (!head) return null;
  if (head.vkey !== vkey || head.origin !== name)
    throw new NotSigned('vkey-changed', 'the stored verifier key is not the one of the log');
  const newest = inFile && (inDatabase?.size ?? 0) <= inFile.size ? inFile : inDatabase;
  // On PostgreSQL a node may be new to a log. An SQLite file has one node, which wrote a line before the
  // first entry.
  if (newest === null || (inFile === null && database.kind === 'sqlite'))
    throw new NotSigned('checkpoint-missing', `checkpoints.log has no line of the log of ${kid}`);
  if (newest !== inFile) await requireExtended(database, kid, inFile, newest);
  if (inDatabase && inDatabase.size === inFile?.size && !inDatabase.root.equals(inFile.root))
    throw new NotSigned('checkpoint-not-extended', `two checkpoints of ${inFile.size} entries were signed`);
  await requireExtended(database, kid, newest, head);
  return { head, inFile, inDatabase, newest };
}

/** Signs the head. Earlier entries were checked when `after` was signed. @throws {NotSigned} */
async function signHead(
  { database, clock }: CheckpointDeps,
  kid: string,
  { signer, stateMac }: LogKeys,
  { size, root }: LogHead,
  after: Signed,
): Promise<Signed> {
  const problems = await checkNewEntries(database, kid, { from: after.size, to: size, macs: stateMac });
  // A clock that was wrong once must not stop the signing: verify and doctor report it.
  const [problem] = problems.filter(({ code }) => code !== 'time-out-of-order');
  if (problem) throw new NotSigned(problem.code, problem.what);
  return { text: signCheckpoint(size, root, signer), size, root, signedAt: clock() };
}

interface Limits {
  readonly atLeast: number;
  readonly maxAge: number;
}

/** This clock may be ahead of or behind the one that signed, so the distance counts. */
const isRecent = ({ clock }: CheckpointDeps, { signedAt }: Signed, { maxAge }: Limits): boolean =>
  Math.abs(clock() - signedAt) < maxAge;

/** The checkpoint that the file and the table share, if it is recent: most calls end here. */
async function recentCheckpoint(deps: CheckpointDeps, kid: string, vkey: string, limits: Limits) {
  const inFile = await lastInFile(deps, vkey);
  if (!inFile || inFile.size < limits.atLeast || !isRecent(deps, inFile, limits)) return null;
  const stored = await newestCheckpoint(deps.database, kid);
  const head = await readHead(deps.database, kid);
  return head && stored?.text === inFile.text && inFile.size <= head.size ? inFile : null;
}

/** Nodes with many writers overtake each other a few times in a row; the bound ends an endless loop. */
const TRIES = 20;
/** Another process stored a checkpoint meanwhile; the next try uses that one. */
const OVERTAKEN = Symbol('overtaken');

/** Writes the line before the row, so that this node extends every checkpoint that others have seen of it. */
async function tryToSign(deps: CheckpointDeps, kid: string, keys: LogKeys, limits: Limits) {
  const { vkey } = keys.signer;
  const recent = await recentCheckpoint(deps, kid, vkey, limits);
  if (recent) return recent;
  const signed = await readSigned(deps, kid, keys.signer);
  if (!signed) return null;
  const { head, inFile, inDatabase, newest } = signed;
  const keep = (next: Signed, after: Signed | null) => deps.book.keep({ kid, vkey, ...next }, after);
  if (newest !== inFile && !(await keep(newest, inFile))) return OVERTAKEN;
  const isCurrent = newest.size === head.size || isRecent(deps, newest, limits);
  const next =
    isCurrent && newest.size >= limits.atLeast ? newest : await signHead(deps, kid, keys, head, newest);
  if (next !== newest && !(await keep(next, newest))) return OVERTAKEN;
  if (inDatabase?.text === next.text) return next;
  const isStored = await deps.database.transaction((tx) => putCheckpoint(tx, kid, next, inDatabase));
  return isStored ? next : OVERTAKEN;
}

/**
 * A checkpoint over at least `atLeast` entries, at most `maxAge` old unless the log has no newer entries.
 * @returns null: no such tenant.
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
    const keys = deps.tenantOf(kid);
    if (!keys) return null;
    const signed = await tryToSign(deps, kid, keys, { atLeast, maxAge });
    if (signed !== OVERTAKEN) return signed;
  }
  throw new Unavailable('another checkpoint of the log was stored during each try');
}

/** Makes at least one checkpoint an hour per log with new entries, and copies those of other nodes. */
export async function keepCheckpoints(deps: CheckpointDeps, kid: string): Promise<void> {
  await currentCheckpoint(deps, kid, 0, HOUR);
}
