import { afterAll, beforeAll, describe } from 'vitest';
import type { MakeDatabase, TestDatabase } from '../../../db/contract/database.ts';
import { onPostgres, onSqlite, withoutDeadlock } from '../../../db/contract/makers.ts';
import { missingPostgres, sharedPostgres } from '../../../support/postgres.ts';
import { describeWithTool } from '../../../support/tools.ts';
import { appenderContract } from './appender.ts';
import { doubtsContract } from './doubts.ts';
import { erasureContract } from './erasure.ts';
import { faultsContract } from './faults.ts';
import { forgedContract } from './forged.ts';
import { idempotencyContract } from './idempotency.ts';
import { joinsContract } from './joins.ts';
import { readerContract } from './reader.ts';

/** Every database must pass these suites for consent and its log. */
function consentContract(make: MakeDatabase): void {
  let fixture: TestDatabase;
  const at = {} as Parameters<typeof appenderContract>[0];
  beforeAll(async () => {
    fixture = await make();
    Object.assign(at, { db: fixture.database, other: await fixture.connect() });
  });
  afterAll(() => fixture.close());
  appenderContract(at);
  doubtsContract(at);
  erasureContract(at);
  faultsContract(at);
  forgedContract(at);
  idempotencyContract(at);
  joinsContract(at);
  readerContract(at);
}

const onFile = await onSqlite();

describe('consent on SQLite', () => {
  consentContract(onFile);
});

describeWithTool('consent on PostgreSQL', await missingPostgres(), () => {
  const server = sharedPostgres();
  consentContract(onPostgres(server));
  withoutDeadlock(server);
});
