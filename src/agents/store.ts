import type { Knex } from 'knex';
import { writeActForAll } from '../audit/audit-store.ts';
import { keepNoncesFrom, raiseForgotten, readForgotten } from '../db/clock-rule-store.ts';
import type { Database } from '../db/engine.ts';
import { createGroup } from '../db/group-commit.ts';
import { bump } from '../db/meta-store.ts';
import { purge } from '../db/purge.ts';
import { type Bindings, type Columns, fromColumns, insertMany, requireNone, toColumns } from '../db/sql.ts';
import type { InstallationAct } from '../lib/act.ts';
import { MINUTE, SECOND } from '../lib/clock.ts';
import { tryOr } from '../lib/errors.ts';
import type { Job } from '../lib/jobs.ts';
import type { Installation } from '../tenants/directory.ts';
import type { AgentCard } from './card.ts';
import type { AgentKey } from './directory.ts';
import type { BotAuthDeps, SignatureClaim } from './verify.ts';

/**
 * `pinned`: keys given by an operator, never fetched. `listed`: fetched and refreshed. `discovered`: by open
 * discovery.
 */
export type DirectorySource = 'pinned' | 'listed' | 'discovered';

export interface AgentDirectory {
  readonly url: string;
  readonly source: DirectorySource;
  readonly keys: readonly AgentKey[];
  readonly fetchedAt: number | null;
  readonly triedAt: number | null;
  /** The reason why the last fetch failed; the keys of the previous one stay in use. */
  readonly failure: string | null;
  /** Null: the operator named none. */
  readonly card: AgentCard | null;
}

type DirectoryRow = Columns<
  Omit<AgentDirectory, 'keys' | 'card'> & { readonly keys: string; readonly card: string | null }
>;

/** Null for a damaged row, so that it does not hide the other directories. */
const parseStored = (text: string | null): unknown => tryOr((): unknown => JSON.parse(text ?? 'null'), null);

function parseKeys(keys: string): AgentKey[] | null {
  const parsed = parseStored(keys);
  return Array.isArray(parsed) ? (parsed as AgentKey[]) : null;
}

function fromRow(row: DirectoryRow): AgentDirectory {
  const keys = parseKeys(row.keys);
  const failure = keys ? row.failure : 'its stored keys cannot be read';
  const card = parseStored(row.card) as AgentCard | null;
  return { ...fromColumns<AgentDirectory>({ ...row, keys: keys ?? [], card }), failure };
}

export async function listDirectories(database: Database): Promise<AgentDirectory[]> {
  const rows = await database.read<DirectoryRow>('agent_directories').orderBy('url');
  return rows.map(fromRow);
}

const storedCard = ({ card }: AgentDirectory): string | null => card && JSON.stringify(card);

const put = (tx: Knex.Transaction, directory: AgentDirectory): Knex.QueryBuilder =>
  tx('agent_directories')
    .insert(toColumns({ ...directory, keys: JSON.stringify(directory.keys), card: storedCard(directory) }))
    .onConflict('url')
    .merge();

/** The clocks of nodes differ by no more than this. */
const NODE_SKEW_MS = MINUTE;

/** True if this time came from a clock that was ahead and has been set back. */
export const isAhead = (at: number, now: number): boolean => at > now + NODE_SKEW_MS;

/**
 * Stores the result of a fetch, unless the operator changed or removed the directory meanwhile, or another
 * node stored a later fetch.
 * @param directory with the start of the fetch as `triedAt`
 * @param before the directory when the fetch began
 */
export async function saveFetched(
  database: Database,
  directory: AgentDirectory,
  before: AgentDirectory,
  now: number,
): Promise<void> {
  await database.transaction(async (tx) => {
    await bump(tx, 'agents');
    const stored = await tx<DirectoryRow>('agent_directories').where({ url: directory.url }).first();
    const [began, other] = [Number(directory.triedAt), Number(stored?.tried_at)];
    const isLater = stored?.tried_at != null && other > began && !isAhead(other, now);
    const isWanted = stored ? isUnchanged(stored as DirectoryRow, before) : isNew(before);
    if (isWanted && !isLater) await put(tx, directory);
  });
}

/** The operator changed nothing meanwhile: nobody else writes pinned keys, or names a card. */
const isUnchanged = (stored: DirectoryRow, before: AgentDirectory): boolean =>
  stored.source === before.source &&
  fromRow(stored).card?.url === before.card?.url &&
  (stored.source !== 'pinned' || stored.keys === JSON.stringify(before.keys));

/** Found by open discovery, and not stored yet. */
const isNew = ({ source, triedAt }: AgentDirectory): boolean => source === 'discovered' && triedAt === null;

/**
 * Stores a directory of the operator and replaces what is stored for its address. Running servers see it
 * within 5 s.
 */
export function addDirectory(database: Database, directory: AgentDirectory, by: InstallationAct) {
  const { url: agent, source, card } = directory;
  return database.transaction(async (tx) => {
    await bump(tx, 'agents');
    await put(tx, directory);
    await writeActForAll(tx, by, 'agent.added', { agent, source, ...(card && { card: card.url }) });
  });
}

/** @returns false: it was not on the list */
export function removeDirectory(database: Database, url: string, by: InstallationAct): Promise<boolean> {
  return database.transaction(async (tx) => {
    await bump(tx, 'agents');
    const directory = tx('agent_directories').where({ url });
    const deletedCount = (await directory.clone().delete()) as unknown as number;
    await requireNone(tx, directory, `agent ${url} is not removed`);
    if (deletedCount === 0) return false;
    await writeActForAll(tx, by, 'agent.removed', { agent: url });
    return true;
  });
}

async function claimBatch(database: Database, claims: readonly SignatureClaim[]): Promise<boolean[]> {
  // Only the first of each nonce: a statement must not change a row twice.
  const first = new Map([...claims].reverse().map((claim) => [claim.nonce, claim]));
  const rows = [...first.values()].map(
    ({ nonce, bundle, expiresAt }): Bindings => [nonce, bundle, expiresAt],
  );
  rows.sort((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1));
  return database.transaction(async (tx) => {
    const stored = await insertMany<{ nonce: string; bundle: string }>(
      tx,
      'INSERT INTO agent_nonces (nonce, bundle, expires_at)',
      rows,
      // This changes nothing, but returns the bundle that has the nonce.
      'ON CONFLICT (nonce) DO UPDATE SET bundle = agent_nonces.bundle RETURNING nonce, bundle',
    );
    const bundleOf = new Map(stored.map(({ nonce, bundle }) => [nonce, bundle]));
    // An earlier claim of the same signature had the same expiry, so its row may be deleted already.
    const forgotten = await readForgotten(tx);
    return claims.map(({ nonce, bundle, expiresAt }) => {
      return bundleOf.get(nonce) === bundle && expiresAt >= forgotten;
    });
  });
}

/** The replay cache of signatures, shared by all nodes. */
export function createNonceClaimer(database: Database): BotAuthDeps['claimNonce'] {
  const group = createGroup<SignatureClaim, boolean>({
    name: 'nonce',
    run: (claims) => claimBatch(database, claims),
    maxBatch: 400,
    maxWaiting: 5000,
  });
  return (claim) => group.submit(claim);
}

/** Deletes the nonces of signatures that expired before `from`, and records that time. */
export function purgeAgentNonces(database: Database, from: number): Promise<number> {
  const note = (tx: Knex.Transaction): Promise<void> => raiseForgotten(tx, from);
  return purge(database, 'agent_nonces', ['nonce'], (rows) => rows.where('expires_at', '<', from), note);
}

export const agentJobs = ({
  database,
  config,
}: Pick<Installation, 'database' | 'config'>): readonly Job[] => [
  {
    name: 'purge-agent-nonces',
    every: MINUTE,
    run: ({ until }) => purgeAgentNonces(database, keepNoncesFrom(until, config.max_clock_skew * SECOND)),
  },
];
