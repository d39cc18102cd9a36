// Prints `PASSED FAILED` of vitest's JSON report. usage: node .ci/count.mjs REPORT EXIT_STATUS
import { readFileSync } from 'node:fs';

const [file = '', status = '1'] = process.argv.slice(2);

function read() {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    console.error('there is no report of the tests');
    return { testResults: [] };
  }
}

const { testResults } = read();
let passed = 0;
let failed = 0;
for (const { name, status: outcome, message, assertionResults } of testResults) {
  const bad = assertionResults.filter((result) => result.status !== 'passed');
  for (const result of bad) console.error(`${result.status}: ${name} > ${result.fullName}`);
  passed += assertionResults.length - bad.length;
  failed += bad.length;
  if (outcome !== 'passed' && bad.length === 0) {
    console.error(`failed: ${name}: ${message}`);
    failed += 1;
  }
}
if (failed === 0 && (status !== '0' || passed === 0)) {
  console.error(`the run ended with ${status} although no test failed`);
  failed += 1;
}
console.log(`${passed} ${failed}`);
