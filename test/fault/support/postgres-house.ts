import pg from 'pg';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { createHouse, type House, type Rows } from './house.ts';

/** An installation on a PostgreSQL of its own that syncs what it commits. */
export interface PostgresHouse {
  readonly house: House;
  readonly postgres: PostgresServer;
  stop(): Promise<void>;
}

export async function createPostgresHouse(): Promise<PostgresHouse> {
  const postgres = await startPostgres({ durable: true });
  const connectionString = await postgres.freshUrl();
  const sql = async (statement: string): Promise<Rows> => {
    const client = new pg.Client({ connectionString });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(statement)).rows;
    } finally {
      await client.end();
    }
  };
  const house = await createHouse({ settings: { GPD_DATABASE_URL: connectionString }, sql });
  return {
    house,
    postgres,
    async stop() {
      await house.stop();
      await postgres.stop();
    },
  };
}
