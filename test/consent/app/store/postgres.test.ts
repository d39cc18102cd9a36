import { beforeAll, expect, it } from 'vitest';
import type { MakeDatabase } from '../../../db/contract/database.ts';
import { onPostgres } from '../../../db/contract/makers.ts';
import { missingPostgres, sharedPostgres } from '../../../support/postgres.ts';
import { describeWithTool } from '../../../support/tools.ts';
import { consentContract } from './contract.ts';

let there: MakeDatabase;

describeWithTool('consent on PostgreSQL', await missingPostgres(), () => {
  const server = sharedPostgres();
  beforeAll(async () => {
    there = await onPostgres(server);
  });

  consentContract((schema) => there(schema));

  it('did all of that without one deadlock', async () => {
    const log = await server.log();
    expect(log).toContain('ready to accept connections');
    expect(log).not.toContain('deadlock detected');
  });
});
