import { defineConfig } from 'vitest/config';

const room = process.env['MUTATE'];
/** A room is tested by its own tests alone. */
const ROOMS = [
  `test/${room ?? '{auth,seal,ledger,ingest,consent}'}/*.test.ts`,
  `test/${room ?? 'ingest'}/verdict/**/*.test.ts`,
];

/** The tests of the rooms that are mutated, in one process: pure ones, and those of a provider in the same process. */
export default defineConfig({
  test: {
    include: ROOMS,
    isolate: false,
    // Each mutant's own limit comes from Stryker; the first run of all may meet a busy machine.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
