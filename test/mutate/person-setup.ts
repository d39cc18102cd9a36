import { vi } from 'vitest';

/** The map of a person with one of its values changed: MUTANT is the number of the mutant. */
vi.mock('../../src/rights/person-map.ts', async (importOriginal) => {
  const original = await importOriginal<typeof import('../../src/rights/person-map.ts')>();
  const { mutantAt } = await import('./person-mutants.ts');
  const mutant = mutantAt(original.SUBJECT_DATA, process.env['MUTANT']);
  return { ...original, SUBJECT_DATA: mutant ? mutant.map : original.SUBJECT_DATA };
});
