import { defineConfig } from 'vitest/config';

/** The tests of the rooms that are mutated, in one process: pure ones, and those of a provider in the same process. */
export default defineConfig({
  test: {
    include:
      process.env['MUTATE'] === 'person'
        ? ['test/mutate/person.ts']
        : ['test/{auth,seal,ledger,ingest,consent}/*.test.ts', 'test/ingest/classify/**/*.test.ts'],
    isolate: false,
    // Each mutant's own limit comes from Stryker; the first run of all may meet a busy machine.
    testTimeout: 60_000,
  },
});
