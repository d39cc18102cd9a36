import { missingPostgres, sharedPostgres } from '../support/postgres.ts';
import { describeWithTool } from '../support/tools.ts';
import { onPostgres, withoutDeadlock } from './contract/makers.ts';
import { storedLogContract, storedRightsContract } from './contract/storage.ts';

describeWithTool('log and rights on PostgreSQL', await missingPostgres(), () => {
  const server = sharedPostgres();
  const make = onPostgres(server);

  storedLogContract(make);
  storedRightsContract(make);
  withoutDeadlock(server);
});
