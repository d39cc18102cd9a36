import { beforeAll } from 'vitest';
import { missingPostgres, sharedPostgres } from '../support/postgres.ts';
import { describeWithTool } from '../support/tools.ts';
import { deadlockContract, type MakeDatabase } from './contract/database.ts';
import { onPostgres } from './contract/makers.ts';
import { storedRightsContract } from './contract/storage.ts';

let there: MakeDatabase;
const make: MakeDatabase = (schema) => there(schema);

describeWithTool('rights on PostgreSQL', await missingPostgres(), () => {
  const server = sharedPostgres();
  beforeAll(async () => {
    there = await onPostgres(server);
  });

  storedRightsContract(make);
  deadlockContract(server);
});
