import { describe } from 'vitest';
import { onSqlite } from './contract/makers.ts';
import { storageContract } from './contract/storage.ts';

const make = await onSqlite();

describe('storage on SQLite', () => {
  storageContract(make);
});
