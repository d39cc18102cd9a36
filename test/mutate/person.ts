import { describe } from 'vitest';
import { onSqlite } from '../db/contract/makers.ts';
import { housekeepingContract } from '../ops/contract/housekeeping.ts';
import { casesContract } from '../rights/contract/cases.ts';
import { erasePlanContract } from '../rights/contract/erase-plan.ts';
import { erasureContract } from '../rights/contract/erasure.ts';
import { receiptContract } from '../rights/contract/receipts.ts';
import { rightsContract } from '../rights/contract/rights.ts';
import { subjectDataContract } from '../rights/contract/subject-data.ts';
import { tenantGoingContract } from '../tenants/contract/tenant-going.ts';
// Of one file, as the changed map is not seen by the second file of a process.
import '../rights/dsar/coverage.test.ts';
import '../rights/erase/erase-service.test.ts';
import '../rights/erase/erasure-log.test.ts';
import '../rights/erase/reapply.test.ts';
import '../rights/subject-map.test.ts';

const make = await onSqlite();

/** What the map of a person decides, on SQLite alone. */
describe('the map of a person', () => {
  subjectDataContract(make);
  erasePlanContract(make);
  erasureContract(make);
  receiptContract(make);
  rightsContract(make);
  casesContract(make);
  tenantGoingContract(make);
  housekeepingContract(make);
});
