import { expect, it } from 'vitest';
import { jobsOf } from '../../src/app/upkeep-service.ts';
import { loadConfig } from '../../src/config.ts';
import { HOUR, MINUTE } from '../../src/lib/clock.ts';
import { runJobs } from '../../src/lib/jobs.ts';
import { createServices, loadTenants } from '../../src/services.ts';
import { KID } from '../support/constants.ts';
import { initGpd } from '../support/server.ts';

/** A job does its work in the order in which others rely on it: keys are destroyed before their end is written to erasures.log, for one. */
const EACH_MINUTE = [
  'purge-nonces purge-summaries purge-networks purge-agent-nonces purge-rates purge-sessions purge-outbox tell-safeguards purge-console',
  'seal-verdicts seal-audit keep-checkpoints cosign-checkpoints',
  'purge-key-traffic destroy-keys flush-key-use',
  'tally record-ended resume-erasures tell-due tell-unfinished',
];
const EACH_HOUR = ['thin-checkpoints', 'retention drop-old-erasures release-pages sweep-orphans'];

const namesIn = (lines: readonly string[]): string[] => lines.flatMap((line) => line.split(' '));

it('every feature brings its jobs; over a new installation each of them ends without a failure', async () => {
  const { dataDir } = await initGpd();
  const services = await createServices(loadConfig({ environment: { GPD_DATA_DIR: dataDir }, flags: {} }));
  await loadTenants(services);
  const calls: string[] = [];
  const jobs = jobsOf(services, {
    cosign: async (kid) => void calls.push(`cosign ${kid}`),
    eraseAgain: async () => void calls.push('erase again'),
  });
  const due = (ms: number): string[] => jobs.filter(({ every }) => every === ms).map(({ name }) => name);
  expect(due(MINUTE)).toEqual(namesIn(EACH_MINUTE));
  expect(due(HOUR)).toEqual(namesIn(EACH_HOUR));
  // Its name is what a job's failures and its last run are kept by.
  expect(new Set(jobs.map(({ name }) => name)).size).toBe(jobs.length);
  const now = Date.now();
  const options = { kids: () => Promise.resolve([KID]) };
  expect(await runJobs(jobs, { now, until: now }, options)).toEqual([]);
  expect(calls).toEqual([`cosign ${KID}`, 'erase again']);
  expect(await runJobs(jobs, { now, until: now, shouldContinue: () => false }, options)).toEqual([]);
  expect(calls).toHaveLength(2);
  await services.database.close();
});
