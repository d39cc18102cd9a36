import { describe } from 'vitest';
import { onSqlite } from './contract/makers.ts';
import { storedLogContract } from './contract/storage.ts';

const make = await onSqlite();

describe('the log on SQLite', () => {
  storedLogContract(make);
});
