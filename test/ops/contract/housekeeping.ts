import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { LAST_RETENTION, LAST_SWEEP, readMeta } from '../../../src/db/meta-store.ts';
import { DAY, HOUR, MINUTE } from '../../../src/lib/clock.ts';
import { Unavailable } from '../../../src/lib/errors.ts';
import type { Moment } from '../../../src/lib/jobs.ts';
import { runRetention } from '../../../src/ops/housekeeping-service.ts';
import { readJobFailures, recordRound } from '../../../src/ops/job-store.ts';
import { retainTenant } from '../../../src/rights/retention/store.ts';
import { removeTenant } from '../../../src/rights/tenant-rows-store.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from '../../db/contract/database.ts';
import { insertBatches } from '../../support/database.ts';
import { NOW } from '../../support/make.ts';
import { addDecision, addRetiringKey, countOf, createHouse, privateKeyOf } from './house.ts';

const KIDS = ['aaa', 'bbb', 'ccc'];
const sql = (database: Database, text: string, values: readonly string[] = []): Promise<unknown> =>
  database.transaction((tx) => tx.raw(text, [...values]));

/** The times of the last complete sweep and retention, as they are stored. */
const sweptIn = async (database: Database): Promise<(string | null)[]> => [
  await readMeta(database, LAST_SWEEP),
  await readMeta(database, LAST_RETENTION),
];

/** Adds a decision past its retention, one of a past hour, and a private key after its grace period. */
async function fill(database: Database, kid: string): Promise<void> {
  await addTenant(database, kid);
  await addDecision(database, kid, 'old', NOW - 100 * DAY);
  await addDecision(database, kid, 'late', NOW - 2 * HOUR);
  await addRetiringKey(database, kid);
}

/** Makes three tenants before each test, of which two are damaged. */
function damagedTenants(make: MakeDatabase): Pick<TestDatabase, 'database'> {
  let db: TestDatabase;
  beforeEach(async () => {
    db = await make();
    for (const kid of KIDS) await fill(db.database, kid);
    // Damage as after a faulty disk or a partial restore.
    await sql(db.database, "UPDATE ledger_heads SET frontier = 'damaged' WHERE kid = 'aaa'");
    await sql(db.database, "UPDATE tenants SET settings = '{\"retention.days\":' WHERE kid = 'bbb'");
  });
  afterEach(() => db.close());
  return {
    get database() {
      return db.database;
    },
  };
}

export function housekeepingContract(make: MakeDatabase): void {
  describe('housekeeping', () => {
    const db = damagedTenants(make);

    it('a fault of one tenant stops that tenant’s job alone, and is complained of once', async () => {
      let endedJobs: string[] = [];
      const destroyedKeys = db.database.read('seal_keys').where({ state: 'destroyed' }).orderBy('kid');
      const house = createHouse(db.database, NOW, {
        instead: {
          async 'record-ended'() {
            endedJobs = await destroyedKeys.clone().pluck('kid');
          },
        },
      });
      expect(await house.round()).toEqual(['retention bbb', 'seal-verdicts aaa']);
      expect(endedJobs).toEqual(KIDS);
      for (const kid of KIDS) expect(await privateKeyOf(db.database, kid), kid).toBeNull();
      for (const [kid, count] of [
        ['aaa', 1],
        ['bbb', 2],
        ['ccc', 1],
      ] as const)
        expect(await countOf(db.database, 'decisions', kid), kid).toBe(count);
      expect(await house.round()).toEqual([]);
      // The destroyed key is in the audit log, which is anchored in the same damaged log after its hour.
      expect(await house.round(HOUR)).toEqual(['seal-audit aaa']);
      // Retention runs beside the sealing: the seal of the other decision is gone by the next retention.
      expect(await countOf(db.database, 'verdict_seals', 'ccc')).toBe(1);
      expect(await house.round()).toEqual([]);
      const reason = expect.any(String) as string;
      expect(await readJobFailures(db.database)).toEqual([
        { job: 'seal-verdicts', kid: 'aaa', reason, since: NOW + MINUTE },
        { job: 'retention', kid: 'bbb', reason: 'SyntaxError', since: NOW + MINUTE },
        { job: 'seal-audit', kid: 'aaa', reason, since: house.at() - MINUTE },
      ]);
      expect(house.swept()).toEqual({ completeAt: null, retentionAt: null });
      expect(await sweptIn(db.database)).toEqual([null, null]);
      await house.stop();
    });

    it('gpd retention run goes on past a tenant that fails, and is written down', async () => {
      await sql(db.database, "UPDATE tenants SET settings = '[]' WHERE kid = 'bbb'");
      await addDecision(db.database, 'ccc', 'again', NOW - 100 * DAY);
      const at = NOW + 9 * HOUR;
      const planned = await runRetention(db.database, at, true);
      expect(planned.failures.map(({ kid }) => kid)).toEqual(['bbb']);
      expect((await readJobFailures(db.database)).map(({ job }) => job)).not.toContain('retention');
      const steps: number[] = [];
      const { results, failures } = await runRetention(db.database, at, false, undefined, (deleted) =>
        steps.push(deleted),
      );
      expect(results.map(({ kid, decisions }) => `${kid} ${decisions}`)).toEqual(['aaa 1', 'ccc 2']);
      // Each step reports its rows once: two decisions of one tenant, one of the other.
      expect(steps.reduce((sum, deleted) => sum + deleted, 0)).toBe(3);
      expect(failures.map(({ kid }) => kid)).toEqual(['bbb']);
      const failure = { job: 'retention', kid: 'bbb', reason: 'ZodError', since: at };
      expect(await readJobFailures(db.database)).toContainEqual(failure);
      await sql(db.database, "UPDATE tenants SET settings = '{}' WHERE kid = 'bbb'");
      expect((await runRetention(db.database, at + HOUR)).failures).toEqual([]);
      expect(await readMeta(db.database, LAST_RETENTION)).toBe(String(at + HOUR));
    });

    it('retention stops between two steps, and the next continues', async () => {
      const old = { kid: 'ccc', decided_at: NOW - 100 * DAY, class: 'human' };
      const row = { ...old, verdict: '{}', salt: 's', commitment: '00'.repeat(32) };
      const rows = Array.from({ length: 600 }, (_, n) => ({ ...row, request_id: `req_many-${n}` }));
      await db.database.transaction((tx) => insertBatches(tx, 'decisions', rows));
      const looks = [true, true, false];
      const shouldContinue = (): boolean => looks.shift() ?? false;
      const first = await retainTenant(db.database, 'ccc', NOW, { shouldContinue });
      const step = first?.decisions ?? 0;
      expect([50, 250]).toContain(step);
      expect(await retainTenant(db.database, 'ccc', NOW)).toMatchObject({ decisions: 601 - step });
    });

    it('keeps the moment since which a job fails, and forgets jobs that ran, nothing else', async () => {
      const round = { failures: [], complete: false, isRetentionDone: false };
      const coded = (code: string): Error => Object.assign(new Error(), { code });
      const failure = { job: 'a', kid: 'ccc', error: coded('X') };
      await recordRound(db.database, { ...round, at: 1, ran: ['a', 'b'], failures: [failure] });
      const later = [
        { ...failure, error: coded('Y') },
        { job: 'b', kid: null, error: Object.assign(new Error(), { name: 'Z' }) },
      ];
      await recordRound(db.database, { ...round, at: 2, ran: ['a', 'b'], failures: later });
      await recordRound(db.database, { ...round, at: 3, ran: ['b'] });
      const failures = (await readJobFailures(db.database)).filter(({ job }) => ['a', 'b'].includes(job));
      expect(failures).toEqual([{ job: 'a', kid: 'ccc', reason: 'Error Y', since: 1 }]);
      await removeTenant(db.database, 'ccc');
      expect((await readJobFailures(db.database)).map(({ job }) => job)).not.toContain('a');
    });
  });
}

/** These follow from what jobs answer, whatever the database. */
export function housekeepingRules(make: MakeDatabase): void {
  describe('rounds of housekeeping', () => {
    const db = damagedTenants(make);

    it('another cause, and the same after it recovered, are complained of again', async () => {
      // This round destroys a key, which is in the audit log of an hour that is over by the next one.
      const earlier = createHouse(db.database);
      await earlier.round();
      await earlier.stop();
      const house = createHouse(db.database, NOW + 2 * HOUR);
      expect(await house.round()).toEqual(['retention bbb', 'seal-audit aaa', 'seal-verdicts aaa']);
      const head = "UPDATE ledger_heads SET frontier = ? WHERE kid = 'aaa'";
      const [frontier = ''] = await db.database.read('ledger_heads').where({ kid: 'ccc' }).pluck('frontier');
      await sql(db.database, "DELETE FROM ledger_heads WHERE kid = 'aaa'");
      expect(await house.round()).toEqual(['seal-audit aaa', 'seal-verdicts aaa']);
      expect(await house.round()).toEqual([]);
      await removeTenant(db.database, 'aaa');
      await fill(db.database, 'aaa');
      expect(await house.round()).toEqual([]);
      expect((await readJobFailures(db.database)).map(({ kid }) => kid)).toEqual(['bbb']);
      await sql(db.database, "UPDATE tenants SET settings = '{}' WHERE kid = 'bbb'");
      expect(await house.round(HOUR)).toEqual([]);
      expect(await readJobFailures(db.database)).toEqual([]);
      expect(await countOf(db.database, 'decisions', 'bbb')).toBe(1);
      const at = new Date(house.at()).toISOString();
      expect(house.swept()).toEqual({ completeAt: at, retentionAt: at });
      expect(await sweptIn(db.database)).toEqual([String(house.at()), String(house.at())]);
      await addDecision(db.database, 'aaa', 'next', house.at() - 2 * HOUR);
      await sql(db.database, head, ['damaged']);
      expect(await house.round()).toEqual(['seal-verdicts aaa']);
      await sql(db.database, head, [frontier]);
      await house.stop();
    });

    it('a job that hangs for one tenant stops nothing else, is counted, and does not begin twice', async () => {
      const starts: string[] = [];
      const ends: (() => void)[] = [];
      const runs: string[] = [];
      const hang = () => new Promise<void>((resolve) => ends.push(resolve));
      const house = createHouse(db.database, NOW, {
        instead: {
          'keep-checkpoints'(kid) {
            starts.push(kid);
            return kid === 'aaa' && ends.length === 0 ? hang() : Promise.resolve();
          },
        },
        deadlineOf: ({ name }) => (name === 'keep-checkpoints' ? 20 : MINUTE),
        onRun: (job, result) => runs.push(`${job} ${result}`),
      });
      expect(await house.round()).toContain('keep-checkpoints aaa');
      expect(starts).toEqual(KIDS);
      expect(runs).toContain('keep-checkpoints late');
      expect(runs).toContain('tally done');
      expect(await countOf(db.database, 'decisions', 'ccc')).toBe(1);
      expect(await readJobFailures(db.database)).toContainEqual(
        expect.objectContaining({ job: 'keep-checkpoints', kid: 'aaa', reason: 'JobLate deadline' }),
      );
      await house.round();
      expect(starts).toEqual([...KIDS, 'bbb', 'ccc']);
      ends[0]?.();
      await house.round();
      expect(starts.slice(5)).toEqual(KIDS);
      expect((await readJobFailures(db.database)).map(({ job }) => job)).not.toContain('keep-checkpoints');
      await house.stop();
    });

    it('hourly jobs do not wait for a job of the minute, and a stop waits for none that hangs', async () => {
      let thinned = (): void => {};
      let end = (): void => {};
      const hourly = new Promise<void>((resolve) => {
        thinned = resolve;
      });
      const house = createHouse(db.database, NOW, {
        instead: {
          'record-ended': () =>
            new Promise<void>((resolve) => {
              end = resolve;
            }),
          'thin-checkpoints': () => Promise.resolve(thinned()),
        },
      });
      const round = house.round();
      await hourly;
      await house.stop();
      await round;
      end();
    });

    it('a job that was not done for long makes the node degraded, until it is done', async () => {
      let fails = true;
      for (const table of ['ledger_heads', 'tenants'])
        await sql(db.database, `DELETE FROM ${table} WHERE kid IN ('aaa', 'bbb')`);
      const house = createHouse(db.database, NOW, {
        instead: { 'flush-key-use': () => (fails ? Promise.reject(new Error('no')) : Promise.resolve()) },
      });
      await house.round();
      expect(house.degraded()).toEqual([]);
      await house.round(16 * MINUTE);
      expect(house.degraded()).toEqual(['housekeeping']);
      fails = false;
      await house.round();
      expect(house.degraded()).toEqual([]);
      await house.stop();
    });

    it('a daily job runs with the first round, and again after a day', async () => {
      const runs: number[] = [];
      const run = async ({ now }: Moment) => void runs.push(now);
      const house = createHouse(db.database, NOW, { jobs: [{ name: 'daily', every: DAY, run }] });
      for (const [after, expected] of [
        [MINUTE, 1],
        [HOUR, 1],
        [DAY, 2],
      ] as const) {
        await house.round(after);
        expect(runs).toHaveLength(expected);
      }
      await house.stop();
    });
  });

  it('what may take long holds up no round, and neither forgets what the other has swept', async () => {
    const db = await make();
    await addTenant(db.database, 'shop');
    const createHold = () => {
      const waitingJobs: (() => void)[] = [];
      const hold = (): Promise<void> => new Promise((resolve) => waitingJobs.push(resolve));
      const until = (count: number) => vi.waitFor(() => expect(waitingJobs).toHaveLength(count));
      return { waitingJobs, hold, until };
    };
    const [ofMinute, hourly] = [createHold(), createHold()];
    const house = createHouse(db.database, NOW, {
      instead: { 'flush-key-use': ofMinute.hold, 'thin-checkpoints': hourly.hold },
    });
    const at = (minutes: number): string => new Date(NOW + minutes * MINUTE).toISOString();
    const rounds = [house.round()];
    await Promise.all([ofMinute.until(1), hourly.until(1)]);
    ofMinute.waitingJobs[0]?.();
    // The hourly jobs of the first round wait.
    await vi.waitFor(() => expect(house.swept()).toEqual({ completeAt: at(1), retentionAt: null }));
    rounds.push(house.round());
    await ofMinute.until(2);
    hourly.waitingJobs[0]?.();
    await vi.waitFor(() => expect(house.swept()).toEqual({ completeAt: at(2), retentionAt: at(2) }));
    ofMinute.waitingJobs[1]?.();
    await Promise.all(rounds);
    expect(house.swept()).toEqual({ completeAt: at(2), retentionAt: at(2) });
    const last = String(NOW + 2 * MINUTE);
    expect(await sweptIn(db.database)).toEqual([last, last]);
    await house.stop();
    await db.close();
  });

  it('a database that is away is complained of once, not once per job', async () => {
    const db = await make();
    await addTenant(db.database, 'shop');
    let away = false;
    const refuse = (): Promise<never> => Promise.reject(new Unavailable('away'));
    const database = new Proxy(db.database, {
      get: (real, name) => (away && name === 'transaction' ? refuse : Reflect.get(real, name)),
    });
    const house = createHouse(database);
    const counts: number[] = [];
    for (const isAway of [false, true, true, false, true]) {
      away = isAway;
      counts.push((await house.round()).length);
    }
    expect(counts).toEqual([0, 1, 0, 0, 1]);
    await house.stop();
    await db.close();
  });
}
