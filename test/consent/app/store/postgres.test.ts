import { afterAll, beforeAll, expect, it } from 'vitest';
import type { MakeDatabase } from '../../../db/contract/database.ts';
import { onPostgres } from '../../../db/contract/makers.ts';
import { missingPostgres, type PostgresServer, startPostgres } from '../../../support/postgres.ts';
import { describeWithTool } from '../../../support/tools.ts';
import { consentContract } from './contract.ts';

let server: PostgresServer;
let there: MakeDatabase;

describeWithTool('consent on PostgreSQL', await missingPostgres(), () => {
  beforeAll(async () => {
    server = await startPostgres();
    there = await onPostgres(server);
  });
  afterAll(() => server.stop());

  consentContract((schema) => there(schema));

  it('did all of that without one deadlock', () => {
    expect(server.log()).toContain('ready to accept connections');
    expect(server.log()).not.toContain('deadlock detected');
  });
});
