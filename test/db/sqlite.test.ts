import { describe } from 'vitest';
import { onSqlite } from './contract/makers.ts';
import {
  storageContract,
  storageRules,
  storedLogContract,
  storedRightsContract,
} from './contract/storage.ts';

const make = await onSqlite();

describe('storage on SQLite', () => {
  storageContract(make);
  storedLogContract(make);
  storedRightsContract(make);
  storageRules(make);
});
