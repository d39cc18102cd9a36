import { afterAll, beforeAll, describe } from 'vitest';
import { sizeContract } from '../../log/contract/size.ts';
import { missingPostgres, type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { describeWithTool } from '../../support/tools.ts';
import type { MakeDatabase } from '../contract/database.ts';
import { onPostgres, onSqlite } from '../contract/makers.ts';

const make = await onSqlite();

describe('many rows on SQLite', () => {
  sizeContract(make);
});

describeWithTool('many rows on PostgreSQL', await missingPostgres(), () => {
  let server: PostgresServer;
  let there: MakeDatabase;
  beforeAll(async () => {
    server = await startPostgres();
    there = await onPostgres(server);
  });
  afterAll(() => server.stop());

  sizeContract((schema) => there(schema));
});
