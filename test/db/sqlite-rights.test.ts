import { describe } from 'vitest';
import { onSqlite } from './contract/makers.ts';
import { storedRightsContract } from './contract/storage.ts';

const make = await onSqlite();

describe('rights on SQLite', () => {
  storedRightsContract(make);
});
