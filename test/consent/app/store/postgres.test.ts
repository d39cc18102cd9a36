import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Database, openDatabase } from '../../../../src/db/db.ts';
import { migrate } from '../../../../src/db/migrate.ts';
import type { MakeDatabase } from '../../../db/contract/database.ts';
import { missingPostgres, type PostgresServer, startPostgres } from '../../../support/postgres.ts';
import { describeWithTool } from '../../../support/tools.ts';
import { consentContract } from './contract.ts';

let server: PostgresServer;
/** A migrated database, which is copied in a tenth of the time that the migrations take. */
let template: string;

const make: MakeDatabase = async () => {
  const location = await server.freshUrl(template);
  const open: Database[] = [];
  const connect = async (): Promise<Database> => {
    const node = await openDatabase({ location });
    open.push(node);
    return node;
  };
  return {
    database: await connect(),
    connect,
    async close() {
      for (const node of open) await node.close();
    },
  };
};

describeWithTool('consent on PostgreSQL', await missingPostgres(), () => {
  beforeAll(async () => {
    server = await startPostgres();
    template = await server.freshUrl();
    const database = await openDatabase({ location: template });
    await migrate(database);
    await database.close();
  });
  afterAll(() => server.stop());

  consentContract(make);

  it('did all of that without one deadlock', () => {
    expect(server.log()).toContain('ready to accept connections');
    expect(server.log()).not.toContain('deadlock detected');
  });
});
