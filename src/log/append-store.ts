import type { Knex } from 'knex';
import { type Bindings, type HotTransaction, hasRowLocks, insertMany, runHot } from '../db/sql.ts';
import { logLost } from '../db/tenant-hold.ts';
import { appendLeaves, decodeFrontier, EMPTY_FRONTIER, encodeFrontier } from '../ledger/frontier.ts';
import { leafHash } from '../ledger/merkle.ts';
import type { EntryMacs } from './entry-check.ts';
import { LogDamaged } from './read-store.ts';

/** The one way into a tenant's log. */

export interface Head {
  /** When the tenant was made. */
  readonly since: number;
  readonly size: number;
  readonly frontier: string;
}

export interface AppendedEntry {
  readonly seq: number;
  readonly hash: string;
}

/** A log that is only there from here on; the first entry is its genesis. */
export async function createLog(
  tx: Knex.Transaction,
  log: { readonly kid: string; readonly origin: string; readonly vkey: string },
): Promise<void> {
  await tx('ledger_heads').insert({
    ...log,
    size: 0,
    frontier: encodeFrontier(EMPTY_FRONTIER),
    head_hash: '',
    checkpoint: null,
    checkpoint_size: 0,
    checkpoint_at: 0,
  });
}

/**
 * Locks a tenant's head until the transaction ends; so long, the tenant cannot be removed. What decides about an entry is
 * read after this, never before.
 * @returns the head, or why there is no head
 */
export async function takeHead(tx: HotTransaction, kid: string): Promise<Head | Error> {
  const lock = hasRowLocks(tx) ? 'FOR UPDATE OF h' : '';
  const sql = `SELECT t.created_at AS since, h.size AS size, h.frontier AS frontier
    FROM ledger_heads h JOIN tenants t ON t.kid = h.kid WHERE h.kid = ? ${lock}`;
  const [row] = await runHot<Head>(tx, sql, [kid]);
  return row ?? logLost(tx, kid);
}

/** The same. @throws {TenantGone} and for a tenant that is there and has no log */
export async function lockHead(tx: HotTransaction, kid: string): Promise<Head> {
  const taken = await takeHead(tx, kid);
  if (taken instanceof Error) throw taken;
  return taken;
}

/**
 * Appends whole entries in their order, gap-free. The head has to be locked.
 * @param known the head, where nothing was appended since it was locked; else it is read
 * @param macs for entries that are not about a person: without its MAC such an entry counts as forged
 */
export async function appendEntries(
  tx: HotTransaction,
  kid: string,
  entries: readonly Uint8Array[],
  { known, macs }: { readonly known?: Head | undefined; readonly macs?: EntryMacs | undefined } = {},
): Promise<readonly AppendedEntry[]> {
  const head = known ?? (await lockHead(tx, kid));
  const frontier = decodeFrontier(head.frontier);
  if (frontier?.size !== Number(head.size)) throw new LogDamaged('the head of a log was altered');
  const leaves = entries.map(leafHash);
  const { frontier: next, completed } = appendLeaves(frontier, leaves);
  const appended = leaves.map((leaf, i) => ({ seq: frontier.size + i, hash: leaf.toString('hex') }));
  const rows = appended.map(
    ({ seq, hash }, i): Bindings => [
      kid,
      seq,
      hash,
      Buffer.from(entries[i] ?? []).toString(),
      ...(macs ? [macs.ofEntry(seq, hash)] : []),
    ],
  );
  await insertMany(tx, `INSERT INTO ledger_entries (kid, seq, hash, entry${macs ? ', mac' : ''})`, rows);
  const blocks = completed.map(
    ({ level, index, hash }): Bindings => [kid, level, index, hash.toString('hex')],
  );
  await insertMany(tx, 'INSERT INTO ledger_blocks (kid, level, block, hash)', blocks);
  const last = appended.at(-1);
  if (last) {
    const change = 'UPDATE ledger_heads SET size = ?, frontier = ?, head_hash = ? WHERE kid = ?';
    await runHot(tx, change, [next.size, encodeFrontier(next), last.hash, kid]);
  }
  return appended;
}

/** One impersonal entry, in its own transaction. */
export async function appendOne(
  tx: HotTransaction,
  kid: string,
  entry: Uint8Array,
  macs: EntryMacs | undefined,
): Promise<AppendedEntry> {
  const [appended] = await appendEntries(tx, kid, [entry], { macs });
  return appended as AppendedEntry;
}
