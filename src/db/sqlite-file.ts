import knexModule, { type Knex } from 'knex';

const { knex } = knexModule;

/** Of a new file, before its first page; of an older one before a VACUUM. On each connection it would be a write. */
export const AUTO_VACUUM = 'PRAGMA auto_vacuum=INCREMENTAL';

export interface SqliteConnection {
  exec(sql: string, done: (error: Error | null) => void): void;
}

export async function createSqlite(base: Knex.Config): Promise<void> {
  const afterCreate = (connection: SqliteConnection, done: (error: Error | null, c: unknown) => void): void =>
    connection.exec(`${AUTO_VACUUM};PRAGMA journal_mode=WAL`, (error) => done(error, connection));
  const connection = knex({ ...base, pool: { afterCreate, min: 1, max: 1 } });
  try {
    await connection.raw('SELECT 1');
  } finally {
    await connection.destroy();
  }
}
