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
