import type { Knex } from 'knex';
import type { Database } from '../../db/engine.ts';
import { rowsOf } from '../../db/sql.ts';
import { Unavailable } from '../../lib/errors.ts';
import { PERSONAL_TABLES } from '../person-map.ts';

/** Rewrites the files of PostgreSQL: VACUUM gives the room of deleted rows back and does not overwrite it. */

/** The role of the connection may not rewrite the tables, because it does not own them. */
export class NotTheOwner extends Error {
  constructor() {
    super('a role that owns the tables has to do this: set GPD_MIGRATE_DATABASE_URL to it');
    this.name = 'NotTheOwner';
  }
}

const FOREIGN = `SELECT 1 FROM pg_class WHERE oid = ANY (?::regclass[]) AND NOT pg_has_role(relowner, 'USAGE')`;

/** VACUUM copies dead rows that one of these may still read: transactions, standbys with feedback, slots. */
const OLDER = `SELECT who FROM (
    SELECT 'process ' || pid AS who, backend_xmin AS xmin FROM pg_stat_activity
      WHERE pid <> pg_backend_pid() AND (datid IS NULL OR datname = current_database())
    UNION ALL SELECT 'replication slot ' || slot_name, xmin FROM pg_replication_slots
    UNION ALL SELECT 'prepared transaction ' || gid, transaction FROM pg_prepared_xacts
  ) AS readers WHERE xmin IS NOT NULL AND age(xmin) > age(?::text::xid)`;

/** Each try takes a tenth of a second. */
const TRIES = 100;

/** Waits until nobody can read the erased rows any more. @throws {Unavailable} which names who reads */
async function outlastReaders(connection: Knex, tries: number): Promise<void> {
  const [now] = rowsOf<{ xid: string }>(
    await connection.raw('SELECT (txid_current() % 4294967296)::text AS xid'),
  );
  for (let triesLeft = tries; ; triesLeft -= 1) {
    const [reader] = rowsOf<{ who: string }>(await connection.raw(OLDER, [now?.xid ?? '']));
    if (!reader) return;
    if (triesLeft === 0)
      throw new Unavailable(
        `${reader.who} of PostgreSQL may still read the erased rows: wait for it or end it`,
      );
    await connection.raw('SELECT pg_sleep(0.1)');
  }
}

/**
 * Rewrites each table that erasures delete from, with its indexes; each is locked meanwhile.
 * @throws {NotTheOwner}
 * @throws {Unavailable} when a table is in use for too long, or somebody may still read what was erased
 */
export async function scrubFiles(owner: Database, tries = TRIES): Promise<void> {
  await owner.onOwnConnection(async (connection) => {
    if (rowsOf(await connection.raw(FOREIGN, [[...PERSONAL_TABLES]])).length > 0) throw new NotTheOwner();
    await outlastReaders(connection, tries);
    // All other requests for a table queue up behind a VACUUM that waits for its lock.
    await connection.raw("SET lock_timeout = '4s'");
    for (const table of PERSONAL_TABLES) await connection.raw('VACUUM (FULL, ANALYZE) ??', [table]);
    await connection.raw('RESET lock_timeout');
  });
}
