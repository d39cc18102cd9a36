import { describe } from 'vitest';
import { onSqlite } from '../../../db/contract/makers.ts';
import { consentContract } from './contract.ts';

const make = await onSqlite();

describe('consent on SQLite', () => {
  consentContract(make);
});
