import { configDefaults, defineConfig } from 'vitest/config';

const isHeavy = process.env['HEAVY'] === '1';

/** Suites with a command of their own: `npm run test:attack`, `test:cluster`, `test:fault`, `test:package` … */
const heavy = ['attack', 'cluster', 'fault', 'package', 'proxies', 'runbooks'].map(
  (name) => `test/${name}/**`,
);

/**
 * Pure functions and nothing else: these files may share a process, which saves the start of some seventy. What starts a
 * program, a thread or a database lies in `system/` of its room.
 */
const unit = ['agent', 'consent', 'ingest', 'keys', 'ledger', 'lib', 'schema', 'seal', 'tenants'].flatMap(
  (name) => [`test/${name}/*.test.ts`, `test/${name}/!(system)/**/*.test.ts`],
);

const shared = {
  // Each may be a program that starts, and on a busy machine that takes seconds. The heavy suites mostly wait.
  maxConcurrency: isHeavy ? 5 : 3,
  testTimeout: 30_000,
  hookTimeout: 60_000,
};
const exclude = [...configDefaults.exclude, ...(isHeavy ? [] : heavy)];

// One list of suites; a suite whose tool is missing says so by name (test/support/tools.ts).
export default defineConfig({
  test: {
    // One more than the cores of a small machine: browsers, clocks and databases are often waited for. A heavy suite
    // is full of processes of its own.
    maxWorkers: isHeavy ? 2 : 3,
    globalSetup: ['test/support/global-setup.ts'],
    coverage: { provider: 'v8', include: ['src/**/*.{ts,tsx}'], reporter: ['text-summary', 'json-summary'] },
    // They begin in the order of their names: the short files come last, so that all workers end at one time.
    projects: [
      {
        test: {
          ...shared,
          name: 'system',
          include: ['test/**/*.test.ts', 'test/**/*.test.tsx'],
          exclude: [...exclude, ...unit],
        },
      },
      { test: { ...shared, name: 'unit', include: unit, exclude, isolate: false } },
    ],
  },
});
