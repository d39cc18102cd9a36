/**
 * Mutation testing (`npm run test:mutate`, or `MUTATE=ledger npm run test:mutate` for one room): each change of the code that
 * no test notices is a survivor, to be killed by a test or explained. Pure rooms: their tests start no program.
 */
const ROOMS = {
  seal: ['src/seal/**/*.ts'],
  ledger: ['src/ledger/**/*.ts'],
  ingest: ['src/ingest/verdict/*.ts', 'src/ingest/{consent-gate,open}.ts'],
  consent: ['src/consent/{decide,plan-write,principal}.ts'],
  auth: ['src/auth/{api-key,bearer,claims,console-session,jwt,login}.ts'],
};
const room = process.env['MUTATE'];
const mutate =
  room === undefined ? Object.values(ROOMS).flat() : ROOMS[/** @type {keyof typeof ROOMS} */ (room)];
if (!mutate) throw new Error(`MUTATE is one of ${Object.keys(ROOMS).join(', ')}`);

export default {
  mutate,
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner'],
  vitest: { configFile: 'test/mutate/vitest.config.ts' },
  coverageAnalysis: 'perTest',
  ignoreStatic: true,
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { allowColor: false, logTests: false },
  // TypeScript 7 has no interface to rewrite its settings by, and nothing here reads them.
  tsconfigFile: 'none.json',
  tempDirName: '.stryker-tmp',
  concurrency: 2,
  thresholds: { high: 95, low: 90, break: 85 },
};
