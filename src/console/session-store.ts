import type { Knex } from 'knex';
import type { ConsoleSession } from '../auth/credentials.ts';
import type { Database } from '../db/engine.ts';
import { tryLockTenant } from '../db/meta-store.ts';
import { type Columns, fromColumns, requireNone, toColumns } from '../db/sql.ts';
import { DAY, MINUTE } from '../lib/clock.ts';
import type { Job } from '../lib/jobs.ts';
import type { Installation } from '../tenants/directory.ts';

/** Stores the sessions of staff by the hash of their cookie, and the drafts of their unsent texts. */

export type ConsoleTransaction = Knex.Transaction;

type Row = Columns<Omit<ConsoleSession, 'roles'> & { readonly roles: string }>;

const rowToSession = (row: Row): ConsoleSession =>
  fromColumns<ConsoleSession>({ ...row, roles: row.roles.split(' ') });

export async function insertConsoleSession(tx: ConsoleTransaction, session: ConsoleSession): Promise<void> {
  await tx('console_sessions').insert(toColumns({ ...session, roles: session.roles.join(' ') }));
}

/** The session may have expired; the caller checks that. */
export async function findConsoleSession(database: Database, hash: string): Promise<ConsoleSession | null> {
  const row = await database.read<Row>('console_sessions').where({ hash }).first<Row | undefined>();
  return row ? rowToSession(row) : null;
}

export async function touchConsoleSession(database: Database, hash: string, now: number): Promise<void> {
  await database.transaction((tx) => tx('console_sessions').where({ hash }).update({ seen_at: now }));
}

/** @returns false if there was no such session of this tenant */
export async function deleteConsoleSession(
  tx: ConsoleTransaction,
  kid: string,
  hash: string,
): Promise<boolean> {
  const session = tx('console_sessions').where({ kid, hash });
  const deletedCount = (await session.clone().delete()) as unknown as number;
  await requireNone(tx, session, 'the session of staff has not ended');
  return deletedCount === 1;
}

/** @returns sessions that were used after `since`, the most recent first */
export async function listConsoleSessions(database: Database, kid: string, since: number, limit: number) {
  const rows = await database
    .read<Row>('console_sessions')
    .where({ kid })
    .where('seen_at', '>', since)
    .orderBy('seen_at', 'desc')
    .limit(limit);
  return (rows as Row[]).map(rowToSession);
}

export interface Draft {
  readonly kind: 'resolve' | 'ask' | 'extend';
  readonly outcome: string | null;
  readonly text: string;
}

/** A draft with its text encrypted. */
interface StoredDraft extends Draft {
  readonly kid: string;
  readonly actor: string;
  readonly contestId: string;
  readonly at: number;
}

/** @returns false, and stores nothing, if the tenant has no such contest */
export function saveDraft(database: Database, draft: StoredDraft): Promise<boolean> {
  const { kid, contestId } = draft;
  return database.transaction(async (tx) => {
    if (!(await tryLockTenant(tx, kid))) return false;
    if (!(await tx('contests').where({ kid, contest_id: contestId }).first('contest_id'))) return false;
    const rows = tx('console_drafts').insert(toColumns(draft));
    await rows.onConflict(['kid', 'actor', 'contest_id', 'kind']).merge();
    return true;
  });
}

export async function listDrafts(database: Database, kid: string, actor: string, contestId: string) {
  const drafts = database.read<Columns<StoredDraft>>('console_drafts');
  return drafts.where({ kid, actor, contest_id: contestId }).select('kind', 'outcome', 'text');
}

export async function deleteDrafts(
  database: Database,
  { kid, actor, contestId }: Pick<StoredDraft, 'kid' | 'actor' | 'contestId'>,
  kinds: readonly Draft['kind'][],
): Promise<void> {
  await database.transaction((tx) =>
    tx('console_drafts').where({ kid, actor, contest_id: contestId }).whereIn('kind', kinds).delete(),
  );
}

/** Deletes sessions that expired before `sessionsBefore`, and drafts from before `draftsBefore`. */
export async function purgeConsole(database: Database, sessionsBefore: number, draftsBefore: number) {
  await database.transaction(async (tx) => {
    await tx('console_sessions').where('expires_at', '<', sessionsBefore).delete();
    await tx('console_drafts').where('at', '<', draftsBefore).delete();
  });
}

export const consoleJobs = ({ database }: Pick<Installation, 'database'>): readonly Job[] => [
  {
    name: 'purge-console',
    every: MINUTE,
    run: ({ until }) => purgeConsole(database, until - DAY, until - DAY),
  },
];
