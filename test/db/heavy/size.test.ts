import { describe } from 'vitest';
import { sizeContract } from '../../log/contract/size.ts';
import { missingPostgres, sharedPostgres } from '../../support/postgres.ts';
import { describeWithTool } from '../../support/tools.ts';
import { onPostgres, onSqlite } from '../contract/makers.ts';

const make = await onSqlite();

describe('many rows on SQLite', () => {
  sizeContract(make);
});

describeWithTool('many rows on PostgreSQL', await missingPostgres(), () => {
  sizeContract(onPostgres(sharedPostgres()));
});
