import { missingPostgres } from '../support/postgres.ts';
import { describeWithTool } from '../support/tools.ts';
import { clusterContract } from './contract/all.ts';
import { missingPgBouncer } from './support/pgbouncer.ts';

describeWithTool(
  'nodes behind PgBouncer in transaction pooling',
  (await missingPostgres()) ?? missingPgBouncer(),
  () => {
    clusterContract(true);
  },
);
