// Reads vitest's JSON reports. Prints `PASSED FAILED`, then one line per failed file; names the failed tests on stderr.
// usage: node .ci/count.mjs REPORT EXIT_STATUS [SECOND_REPORT EXIT_STATUS]
// The second report is of a second run of the failed files: tests that pass there count as passed and are written to the file FLAKY.
import { appendFileSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';

const [first = '', firstStatus = '1', second, secondStatus = '1'] = process.argv.slice(2);

/** @returns {Map<string, { outcome: string, message: string, tests: { status: string, fullName: string }[] }>} by file */
function read(file) {
  try {
    const { testResults } = JSON.parse(readFileSync(file, 'utf8'));
    const entries = testResults.map(({ name, status, message, assertionResults }) => [
      relative(process.cwd(), name),
      { outcome: status, message, tests: assertionResults },
    ]);
    return new Map(entries);
  } catch {
    console.error(`there is no report of the tests in ${file}`);
    return new Map();
  }
}

/** test/support/tools.ts gives this name to a suite whose tool is missing. With REQUIRE_TOOLS=1 such a suite fails instead. */
const isNotRun = ({ fullName }) => fullName.includes('NOT RUN: ');

/** A file that does not load and a skipped test count as failed; only a suite without its optional tool does not. */
const faultsOf = ({ outcome, message, tests }) => {
  const bad = tests.filter((test) => test.status !== 'passed' && !isNotRun(test));
  if (bad.length === 0 && outcome !== 'passed')
    return [{ fullName: message || 'the file', status: 'failed' }];
  return bad;
};

const files = read(first);
if (second !== undefined) {
  for (const [name, again] of read(second)) {
    const before = files.get(name);
    files.set(name, again);
    const still = new Set(faultsOf(again).map(({ fullName }) => fullName));
    for (const { fullName } of before ? faultsOf(before) : []) {
      if (!still.has(fullName)) appendFileSync(process.env.FLAKY ?? '/dev/stderr', `${name} > ${fullName}\n`);
    }
  }
}

let passed = 0;
let failed = 0;
const failedFiles = [];
for (const [name, result] of files) {
  const faults = faultsOf(result);
  for (const { fullName, status } of faults) console.error(`${status}: ${name} > ${fullName}`);
  for (const test of result.tests)
    if (isNotRun(test) && test.status !== 'failed') console.error(test.fullName);
  passed += result.tests.filter(({ status }) => status === 'passed').length;
  failed += faults.length;
  if (faults.length > 0) failedFiles.push(name);
}
const status = second === undefined ? firstStatus : secondStatus;
if (failed === 0 && (status !== '0' || passed === 0)) {
  console.error(`the run ended with ${status} although no test failed`);
  failed += 1;
}
console.log([`${passed} ${failed}`, ...failedFiles].join('\n'));
