import type { Knex } from 'knex';
import type { AnchoredTo } from '../audit/audit-store.ts';
import type { Database, Reader } from '../db/engine.ts';
import { missingLogError } from '../db/meta-store.ts';
import { type Bindings, insertMany, lockClause, runSql, sendTogether, type Transaction } from '../db/sql.ts';
import { LEDGER_SECRET, type MasterKey, tenantSecretContext } from '../keys/master-key.ts';
import { genesisEntry } from '../ledger/entries.ts';
import {
  appendLeaves,
  decodeFrontier,
  EMPTY_FRONTIER,
  encodeFrontier,
  type Frontier,
  frontierRoot,
  type HashReader,
  leafHash,
} from '../ledger/merkle.ts';
import { createNoteSigner, logOrigin, signCheckpoint } from '../ledger/note.ts';
import { pagesBy } from '../lib/collections.ts';
import type { Random } from '../lib/crypto.ts';
import { createEntryCheck, type EntryCode, type EntryMacs, type LogProblem } from './problems.ts';

/** Writes and reads the entries of a tenant's log. Every other file appends through this one. */

export interface Head {
  /** The time at which the tenant was made. */
  readonly since: number;
  readonly size: number;
  readonly frontier: string;
}

export interface AppendedEntry {
  readonly seq: number;
  readonly hash: string;
}

/** Makes the empty log of a new tenant; its first entry is the genesis. */
export async function createLog(
  tx: Knex.Transaction,
  log: { readonly kid: string; readonly origin: string; readonly vkey: string },
): Promise<void> {
  await tx('ledger_heads').insert({
    ...log,
    size: 0,
    frontier: encodeFrontier(EMPTY_FRONTIER),
    head_hash: '',
  });
}

/**
 * Locks the head of a tenant's log until the transaction ends; the tenant cannot be removed meanwhile.
 * Whatever decides about an entry is read after this.
 * @returns the head, or the reason why it is missing
 */
export async function tryLockHead(tx: Transaction, kid: string): Promise<Head | Error> {
  const lock = lockClause(tx, 'FOR UPDATE OF h');
  const sql = `SELECT t.created_at AS since, h.size AS size, h.frontier AS frontier
    FROM ledger_heads h JOIN tenants t ON t.kid = h.kid WHERE h.kid = ? ${lock}`;
  const [row] = await runSql<Head>(tx, sql, [kid]);
  return row ?? missingLogError(tx, kid);
}

/** Locks the head of a tenant's log. @throws {TenantGone} and for a tenant that has lost its log */
export async function lockHead(tx: Transaction, kid: string): Promise<Head> {
  const head = await tryLockHead(tx, kid);
  if (head instanceof Error) throw head;
  return head;
}

/** Numbers the entries in order, without gaps. Pure; the caller has locked the head. */
export function placeEntries(head: Head, entries: readonly Uint8Array[]) {
  const frontier = decodeFrontier(head.frontier);
  if (frontier?.size !== Number(head.size)) throw new LogDamaged('the head of a log was altered');
  const leaves = entries.map(leafHash);
  const { frontier: next, completed } = appendLeaves(frontier, leaves);
  const appended = leaves.map(
    (leaf, i): AppendedEntry => ({ seq: frontier.size + i, hash: leaf.toString('hex') }),
  );
  return { appended, entries, next, completed };
}

/** @param macs for entries that are not about a person: without its MAC such an entry counts as forged */
export async function writePlaced(
  tx: Transaction,
  kid: string,
  { appended, entries, next, completed }: ReturnType<typeof placeEntries>,
  macs?: EntryMacs,
): Promise<void> {
  const last = appended.at(-1);
  if (!last) return;
  const rows = appended.map(({ seq, hash }, i): Bindings => {
    const entry = Buffer.from(entries[i] ?? []).toString();
    return [kid, seq, hash, entry, ...(macs ? [macs.ofEntry(seq, hash)] : [])];
  });
  const blocks = completed.map(
    ({ level, index, hash }): Bindings => [kid, level, index, hash.toString('hex')],
  );
  const columns = `kid, seq, hash, entry${macs ? ', mac' : ''}`;
  const change = 'UPDATE ledger_heads SET size = ?, frontier = ?, head_hash = ? WHERE kid = ?';
  await sendTogether(
    () => insertMany(tx, `INSERT INTO ledger_entries (${columns})`, rows),
    () => insertMany(tx, 'INSERT INTO ledger_blocks (kid, level, block, hash)', blocks),
    () => runSql(tx, change, [next.size, encodeFrontier(next), last.hash, kid]),
  );
}

/** Appends entries in order, gap-free. The caller has locked the head. */
export async function appendEntries(
  tx: Transaction,
  kid: string,
  entries: readonly Uint8Array[],
  { macs }: { readonly macs?: EntryMacs | undefined } = {},
): Promise<readonly AppendedEntry[]> {
  const placed = placeEntries(await lockHead(tx, kid), entries);
  await writePlaced(tx, kid, placed, macs);
  return placed.appended;
}

/** Appends one entry that names no person. */
export async function appendOne(
  tx: Transaction,
  kid: string,
  entry: Uint8Array,
  macs: EntryMacs | undefined,
): Promise<AppendedEntry> {
  const [appended] = await appendEntries(tx, kid, [entry], { macs });
  return appended as AppendedEntry;
}

const SEED_BYTES = 32;

export type NewLog = Omit<ReturnType<typeof newLog>, 'wrapped'>;

/** The wrapped seed of a tenant's new log, and the content of its head and first entry. */
export function newLog(
  { masterKey, random }: { readonly masterKey: MasterKey; readonly random: Random },
  request: { readonly kid: string; readonly baseUrl: string; readonly now: number },
) {
  const { kid, baseUrl, now } = request;
  const seed = random(SEED_BYTES);
  const signer = createNoteSigner(logOrigin(baseUrl, kid), seed);
  const { name: origin, vkey } = signer;
  const genesis = genesisEntry(now, vkey);
  // Covers the genesis alone.
  const text = signCheckpoint(1, leafHash(genesis), signer);
  const wrapped = masterKey.wrap(seed, tenantSecretContext(kid, LEDGER_SECRET));
  return { wrapped, origin, vkey, genesis, checkpoint: { text, size: 1, signedAt: now } };
}

/** The rows of a log contradict each other. */
export class LogDamaged extends Error {}

export interface LogHead {
  readonly origin: string;
  readonly vkey: string;
  readonly size: number;
  readonly root: Buffer;
  readonly frontier: Frontier;
  /** The end of the last anchored hour of each table when the log had this size. */
  readonly anchoredTo: Readonly<Record<AnchoredTo, number>>;
}

interface HeadRow extends Pick<LogHead, 'origin' | 'vkey' | 'size'>, Readonly<Record<AnchoredTo, number>> {
  readonly frontier: string;
}

export async function readHead(database: Reader, kid: string): Promise<LogHead | null> {
  const row = await database.read('ledger_heads').where({ kid }).first<HeadRow | undefined>();
  if (!row) return null;
  const frontier = decodeFrontier(row.frontier);
  if (frontier?.size !== Number(row.size)) throw new LogDamaged('the head of a log was altered');
  const { origin, vkey, verdicts_sealed_to, audit_sealed_to } = row;
  const anchoredTo = { verdicts_sealed_to, audit_sealed_to };
  return { origin, vkey, size: frontier.size, root: frontierRoot(frontier), frontier, anchoredTo };
}

/** Reads hashes by tile level: 0 are the leaves, 1 the roots of 256 entries, and so on. */
export function createHashReader(database: Database, kid: string): HashReader {
  return {
    async read(level, start, end) {
      const [table, within, column] =
        level === 0 ? ['ledger_entries', { kid }, 'seq'] : ['ledger_blocks', { kid, level }, 'block'];
      const rows = database
        .read(table)
        .where(within)
        .whereBetween(column, [start, end - 1])
        .orderBy(column);
      const hashes = (await rows.pluck('hash')) as string[];
      if (hashes.length !== end - start) throw new LogDamaged('a log has lost entries');
      return hashes.map((hash) => Buffer.from(hash, 'hex'));
    },
  };
}

export interface StoredEntry {
  readonly seq: number;
  readonly hash: string;
  readonly entry: string;
}

const PAGE = 500;

/** Entries as NDJSON, without holding the log in memory. */
export async function* entryLines(database: Reader, kid: string): AsyncGenerator<string> {
  const next = (last?: StoredEntry) => readEntries(database, kid, last ? last.seq + 1 : 0, PAGE);
  for await (const page of pagesBy(PAGE, next)) for (const one of page) yield `${JSON.stringify(one)}\n`;
}

const entriesFrom = ({ read }: Reader, kid: string, start: number, limit: number) =>
  read('ledger_entries').where({ kid }).where('seq', '>=', start).orderBy('seq').limit(limit);

export async function readEntries(database: Reader, kid: string, start: number, limit: number) {
  const rows = await entriesFrom(database, kid, start, limit).select<StoredEntry[]>('seq', 'hash', 'entry');
  return rows.map(({ seq, hash, entry }) => ({ seq: Number(seq), hash, entry }));
}

export interface MacedRow extends StoredEntry {
  readonly mac: string | null;
}

/** Entries with their MACs, which must not leave gpd. */
export async function readMacedEntries(database: Database, kid: string, start: number, limit: number) {
  const found = entriesFrom(database, kid, start, limit);
  const rows = await found.select<MacedRow[]>('seq', 'hash', 'entry', 'mac');
  return rows.map((row) => ({ ...row, seq: Number(row.seq) }));
}

/** The texts of all entries from `start` on: those appended since a walk. */
export async function textsSince(db: Knex, kid: string, start: number): Promise<readonly string[]> {
  return db('ledger_entries').where({ kid }).where('seq', '>=', start).pluck('entry');
}

export interface NewEntryProblem extends LogProblem {
  readonly code: EntryCode;
}

const NEW_PAGE = 1000;

/** Finds problems in a part of a log before a checkpoint is signed over it. */
export async function checkNewEntries(
  database: Database,
  kid: string,
  part: { readonly from: number; readonly to: number; readonly macs: EntryMacs; readonly now?: number },
): Promise<readonly NewEntryProblem[]> {
  const { from, to, macs, now } = part;
  const problems: NewEntryProblem[] = [];
  const check = createEntryCheck({
    macs,
    now,
    add: (code, problem, seq) => problems.push({ code, what: problem, seq }),
  });
  for (let at = from; at < to; ) {
    const page = await readMacedEntries(database, kid, at, Math.min(NEW_PAGE, to - at));
    for (const entry of page) check(entry);
    if (page.length === 0) break;
    at = (page.at(-1)?.seq ?? at) + 1;
  }
  return problems;
}
