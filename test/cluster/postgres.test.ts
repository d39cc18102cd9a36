import { missingPostgres } from '../support/postgres.ts';
import { describeWithTool } from '../support/tools.ts';
import { clusterContract } from './contract/all.ts';

describeWithTool('nodes on PostgreSQL', await missingPostgres(), () => {
  clusterContract(false);
});
