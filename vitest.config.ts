import { configDefaults, defineConfig } from 'vitest/config';

/** Suites with a command of their own: `npm run test:attack`, `test:cluster`, `test:fault`, `test:package` … */
const heavy = ['attack', 'cluster', 'fault', 'package', 'proxies', 'runbooks'].map(
  (name) => `test/${name}/**`,
);

// One list of suites; a suite whose tool is missing says so by name (test/support/tools.ts).
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts', 'test/**/*.test.tsx'],
    exclude: [...configDefaults.exclude, ...(process.env['HEAVY'] === '1' ? [] : heavy)],
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    globalSetup: ['test/support/global-setup.ts'],
    coverage: { provider: 'v8', include: ['src/**/*.{ts,tsx}'], reporter: ['text-summary', 'json-summary'] },
  },
});
