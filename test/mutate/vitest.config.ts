import { defineConfig } from 'vitest/config';

/** The pure tests of the rooms that are mutated, in one process. */
export default defineConfig({
  test: {
    include: ['test/{seal,ledger,ingest,consent}/*.test.ts', 'test/ingest/classify/**/*.test.ts'],
    isolate: false,
  },
});
