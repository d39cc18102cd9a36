import { configDefaults, defineConfig } from 'vitest/config';

const isHeavy = process.env['HEAVY'] === '1';
/** `npm run test:unit`. */
const isUnit = process.env['UNIT'] === '1';

/** Suites with a command of their own: `npm run test:attack`, `test:cluster`, `test:fault`, `test:package` … */
const apart = ['attack', 'cluster', 'fault', 'package', 'proxies', 'runbooks'].map(
  (name) => `test/${name}/**/*.test.ts`,
);
/** Real browsers; `npm test` does the journeys, in Chromium, `npm run test:browser` the rest. */
const browsers = ['test/{browser,console/browser}/*.test.ts'];
const inBoth = ['test/browser/banner-page.test.ts'];
const journeys = [...inBoth, 'test/browser/my-data.test.ts', 'test/console/browser/chromium.test.ts'];
/** Memory, signals, kills, many rows: what takes long by its nature; `npm run test:heavy`. */
const heavy = ['test/**/heavy/*.test.ts'];
/** They start the built program, or other programs. */
const system = [
  'test/**/system/**/*.test.ts',
  'test/ops/systemd/*.test.ts',
  'test/{bootstrap,native,npm-pack,sbom}.test.ts',
];
/**
 * Pure functions and nothing else; what starts a server or a database lies in `app/` of such a room. Unless they run alone they share
 * the workers of the features, and what these have loaded.
 */
const rooms = 'test/{agent,consent,ingest,keys,ledger,lib,schema,seal,tenants}';
const unit = [
  `${rooms}/*.test.ts`,
  `${rooms}/!(app|heavy|system)/**/*.test.ts`,
  'test/{docs,sdks,security}.test.ts',
];

const shared = {
  // The files of a worker share what it has loaded: to load all of `src` takes seconds.
  isolate: false,
  // Each may be a program that starts, and on a busy machine that takes seconds. The heavy suites mostly wait.
  maxConcurrency: isHeavy ? 5 : 3,
  // These limits end what hangs: ten times what a quiet machine needs. How long something takes is printed, never judged.
  testTimeout: 300_000,
  hookTimeout: 300_000,
  expect: { poll: { interval: 20, timeout: 60_000 } },
  setupFiles: ['test/support/patience.ts'],
};
const none = [...configDefaults.exclude, ...apart];

/** In the CI the files, and the tests in each, run in an order of chance: TEST_SEED, which `.ci/run` prints. */
const shuffled = process.env['CI'] ? { sequence: { shuffle: true } } : {};

const unitTests = { ...shared, ...shuffled, name: 'unit', include: unit, exclude: none };
const alone = isHeavy
  ? [{ test: { ...shared, name: 'apart', include: apart } }]
  : isUnit
    ? [{ test: unitTests }]
    : undefined;

// One list of suites; a suite whose tool is missing says so by name (test/support/tools.ts).
export default defineConfig({
  test: {
    // Twice the cores of a small machine: clocks, disks and databases are often waited for. The other commands say fewer: a heavy
    // suite is full of processes of its own.
    maxWorkers: isHeavy ? 2 : 4,
    // What one project or run has transformed the next one reads; in a folder of its own, as node_modules are copied by tests.
    experimental: { fsModuleCache: true, fsModuleCachePath: '.vitest-cache' },
    globalSetup: ['test/support/global-setup.ts'],
    // Tests use the provider as its documentation says that nobody should.
    onConsoleLog: (text) => !text.startsWith('oidc-provider WARNING'),
    coverage: { provider: 'v8', include: ['src/**/*.{ts,tsx}'], reporter: ['text-summary', 'json-summary'] },
    // `npm test` runs app (unit is in it), system and journeys (bin/bootstrap.mjs); `npm run test:all` everything.
    projects: alone ?? [
      {
        test: {
          ...shared,
          ...shuffled,
          name: 'app',
          setupFiles: ['test/support/umask.ts', 'test/support/patience.ts'],
          include: ['test/**/*.test.ts', 'test/**/*.test.tsx'],
          exclude: [...none, ...browsers, ...system, ...heavy],
        },
      },
      { test: { ...shared, ...shuffled, name: 'system', include: system, exclude: none } },
      { test: { ...shared, name: 'heavy', include: heavy, exclude: none } },
      {
        test: {
          ...shared,
          name: 'journeys',
          include: journeys,
          exclude: none,
          env: { BROWSERS: 'chromium' },
        },
      },
      { test: { ...shared, name: 'journeys-firefox', include: inBoth, env: { BROWSERS: 'firefox' } } },
      { test: { ...shared, name: 'browser', include: browsers, exclude: [...none, ...journeys] } },
    ],
  },
});
