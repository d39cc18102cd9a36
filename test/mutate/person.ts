import { describe, vi } from 'vitest';
import { onSqlite } from '../db/contract/makers.ts';
import { housekeepingContract } from '../ops/contract/housekeeping.ts';
import { casesContract } from '../rights/contract/cases.ts';
import { erasePlanContract } from '../rights/contract/erase-plan.ts';
import { erasureContract } from '../rights/contract/erasure.ts';
import { receiptContract } from '../rights/contract/receipts.ts';
import { rightsContract } from '../rights/contract/rights.ts';
import { subjectDataContract } from '../rights/contract/subject-data.ts';
import { tenantGoingContract } from '../tenants/contract/tenant-going.ts';

/** What the map of a person decides, on SQLite alone, with one of its values changed (MUTANT, the number of the mutant). */
vi.mock('../../src/rights/subject-data.ts', async (importOriginal) => {
  const original = await importOriginal<typeof import('../../src/rights/subject-data.ts')>();
  const { mutantAt } = await import('./person-mutants.ts');
  const mutant = mutantAt(original.SUBJECT_DATA, process.env['MUTANT']);
  return { ...original, SUBJECT_DATA: mutant ? mutant.map : original.SUBJECT_DATA };
});

const make = await onSqlite();

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
