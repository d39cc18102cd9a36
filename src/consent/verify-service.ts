import type { Database } from '../db/engine.ts';
import { BrokenLog } from '../db/line-log.ts';
import { frontierRoot } from '../ledger/merkle.ts';
import { type Checkpoint, signedCheckpoint } from '../ledger/note.ts';
import { checkAnchoredHours } from '../log/anchor-check-store.ts';
import type { CheckpointBook, KeptCheckpoint } from '../log/checkpoint-files.ts';
import { type LogKeys, NotSigned, readSigned } from '../log/checkpoint-service.ts';
import { listCheckpoints } from '../log/checkpoint-store.ts';
import { LogDamaged, type MacedRow, readHead } from '../log/entries-store.ts';
import { addEntry, emptyFold, type Fold, parseStored } from '../log/fold.ts';
import { collectProblems, createEntryCheck, type LogProblem, type Problems } from '../log/problems.ts';
import { walkLog } from '../log/walk-service.ts';
import {
  checkOpenings,
  checkPrincipals,
  checkStrayOpenings,
  checkStrayStates,
  erasedSince,
  type ParsedEntry,
  type PeopleCheck,
} from './verify-people-store.ts';
import { checkPolicies, checkPurposes } from './verify-terms-store.ts';

/** `gpd consent verify` recomputes the whole log from its entries, then compares every row about it. */

export interface LogCheck {
  readonly size: number;
  /** base64, as in a checkpoint. */
  readonly root: string;
  readonly ok: boolean;
  readonly problems: readonly LogProblem[];
}

/** Facts that are checked without trust in the database. */
export interface Trusted {
  readonly book: CheckpointBook;
  readonly keys: LogKeys & { readonly principalWrap: Uint8Array };
  /** Checkpoints that were kept elsewhere, signed by this log's key. */
  readonly against?: readonly Checkpoint[];
}

export interface VerifyOptions {
  /** Undefined to check the database only against itself. */
  readonly trusted: Trusted | undefined;
  /** No entry may be later than this. */
  readonly now: number;
  readonly onProgress?: (done: number, total: number) => void;
}

type Claim = Pick<Checkpoint, 'size' | 'root'> & { readonly from: string };

async function readBook({ book, keys }: Trusted, problems: Problems): Promise<readonly KeptCheckpoint[]> {
  try {
    return await book.all(keys.signer.vkey);
  } catch (error) {
    if (!(error instanceof BrokenLog)) throw error;
    problems.add('checkpoint-missing', error.message);
    return [];
  }
}

/** Reads all signed checkpoints before the head, because a server may append and sign entries meanwhile. */
async function claimsOf({ database, kid, problems }: PeopleCheck, trusted: Trusted | undefined) {
  const trustedCheckpoints = trusted ? await readBook(trusted, problems) : [];
  const stored = await listCheckpoints(database, kid);
  const head = await readHead(database, kid);
  if (!head) return { head, claims: [] };
  const claims: Claim[] = [];
  for (const { text, size } of stored) {
    const checkpoint = signedCheckpoint(text, trusted?.keys.signer.vkey ?? head.vkey);
    const problem = `a stored checkpoint of ${size} entries was not signed by this log`;
    if (checkpoint?.size === size) claims.push({ ...checkpoint, from: 'the database' });
    else problems.add('checkpoint-not-extended', problem);
  }
  for (const checkpoint of trustedCheckpoints) claims.push({ ...checkpoint, from: 'checkpoints.log' });
  for (const checkpoint of trusted?.against ?? []) claims.push({ ...checkpoint, from: 'the given file' });
  return { head, claims };
}

/** Reports why the next checkpoint would not be signed. */
async function checkSigned({ database, kid, problems }: PeopleCheck, { book, keys }: Trusted): Promise<void> {
  try {
    const signed = await readSigned({ database, book }, kid, keys.signer);
    if (signed && !signed.inDatabase)
      problems.add('checkpoint-missing', 'the database has no checkpoint of the log');
  } catch (error) {
    if (!(error instanceof NotSigned)) throw error;
    const isReported = problems.found.some((problem) => problem.what === error.detail);
    if (!isReported) problems.add(error.problem, error.detail);
  }
}

function checkClaims(
  claims: readonly Claim[],
  size: number,
  roots: ReadonlyMap<number, Buffer>,
  problems: Problems,
): void {
  const reportedEntries = new Set<number>();
  for (const { size: claimed, root, from } of claims) {
    if (
      (claimed <= size && (claimed === 0 || roots.get(claimed)?.equals(root))) ||
      reportedEntries.has(claimed)
    )
      continue;
    reportedEntries.add(claimed);
    const problem = claimed > size ? `has more entries than the log` : `is of other entries`;
    problems.add('checkpoint-not-extended', `a checkpoint of ${claimed} entries in ${from} ${problem}`);
  }
}

async function checkPeople(check: PeopleCheck, size: number, unopened: number | null): Promise<void> {
  if (unopened !== null && !(await erasedSince(check, size))) {
    const problem = `the opening of entry ${unopened} is missing, and nobody was erased since`;
    check.problems.add('opening-changed', problem, unopened);
  }
  await checkStrayOpenings(check);
  await checkStrayStates(check);
  await checkPrincipals(check);
}

async function checkLog(database: Database, kid: string, options: VerifyOptions): Promise<LogCheck | null> {
  const { trusted, now, onProgress = () => {} } = options;
  const problems = collectProblems();
  const check: PeopleCheck = { database, kid, wrapKey: trusted?.keys.principalWrap ?? null, problems };
  const { head, claims } = await claimsOf(check, trusted);
  if (!head) return null;
  if (trusted) await checkSigned(check, trusted);
  const fold = emptyFold();
  const checkEntry = createEntryCheck({
    macs: trusted?.keys.stateMac,
    now,
    add: (...problem) => problems.add(...problem),
  });
  let unopened: number | null = null;
  const onPage = async (page: readonly MacedRow[]): Promise<void> => {
    const parsed = page.map((row) => ({ seq: row.seq, hash: row.hash, entry: parseStored(row.entry) }));
    for (const [i, row] of page.entries()) {
      const { entry } = parsed[i] as ParsedEntry;
      addEntry(fold, row.seq, entry);
      checkEntry(row, entry);
    }
    unopened = await checkOpenings(check, parsed, unopened, fold);
    onProgress((page.at(-1)?.seq ?? 0) + 1, head.size);
  };
  const sizes = new Set(claims.map(({ size }) => size));
  const { frontier, roots } = await walkLog(database, kid, head, { sizes, problems, onPage });
  if (!problems.found.some(({ code }) => code === 'entry-changed')) {
    checkClaims(claims, frontier.size, roots, problems);
    checkGenesis(fold, trusted?.keys.signer.vkey ?? head.vkey, problems);
    await checkPeople(check, frontier.size, unopened);
    await checkPolicies(check, fold);
    await checkPurposes(check, fold);
    const walked = { size: frontier.size, anchoredTo: head.anchoredTo };
    await checkAnchoredHours(database, kid, walked, fold, problems);
  }
  const { found } = problems;
  const root = frontierRoot(frontier).toString('base64');
  return { size: frontier.size, root, ok: found.length === 0, problems: found };
}

function checkGenesis(fold: Fold, vkey: string, problems: Problems): void {
  if (fold.genesisKey !== null && fold.genesisKey !== vkey)
    problems.add('vkey-changed', 'the genesis entry names a different key from the log’s', 0);
}

/** @returns null for an unknown tenant */
export async function verifyLog(
  database: Database,
  kid: string,
  options: VerifyOptions,
): Promise<LogCheck | null> {
  try {
    const checked = await checkLog(database, kid, options);
    // The removal of a tenant deletes the head first, and then the other rows.
    return checked && (checked.ok || (await readHead(database, kid))) ? checked : null;
  } catch (error) {
    if (!(error instanceof LogDamaged)) throw error;
    return { size: 0, root: '', ok: false, problems: [{ code: 'entry-changed', what: error.message }] };
  }
}
