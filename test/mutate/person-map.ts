import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { SUBJECT_DATA } from '../../src/rights/person-map.ts';
import { mutantsOf } from './person-mutants.ts';

/**
 * Mutation of the map of a person (`npm run test:mutate:person`). Stryker leaves constants alone, so each value of each row is
 * changed here, and the contracts that are folds over the map run with it, on SQLite. A mutant that no test notices survives.
 */

const AT_ONCE = 2;
const BREAK_BELOW = 85;

async function isKilled(number: string): Promise<boolean> {
  const args = ['vitest', 'run', '-c', 'test/mutate/vitest.config.ts', '--bail', '1', '--reporter', 'dot'];
  const env = { ...process.env, MUTATE: 'person', MUTANT: number };
  const child = spawn('npx', args, { env, stdio: 'ignore' });
  const [code] = await once(child, 'exit');
  return code !== 0;
}

if (await isKilled('none')) throw new Error('the tests fail without a mutant');
const mutants = mutantsOf(SUBJECT_DATA);
const survivors: string[] = [];
let next = 0;
async function work(): Promise<void> {
  for (let number = next++; number < mutants.length; number = next++) {
    const name = mutants[number]?.name ?? '';
    if (await isKilled(String(number))) continue;
    survivors.push(name);
    console.log(`survived  ${name}`);
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, work));
const score = 100 * (1 - survivors.length / mutants.length);
console.log(`${mutants.length - survivors.length} of ${mutants.length} killed, ${score.toFixed(2)} %`);
process.exitCode = score < BREAK_BELOW ? 1 : 0;
