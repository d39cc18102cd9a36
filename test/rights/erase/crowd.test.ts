import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { DEVICE_IDENTIFICATION } from '../../../src/tenants/purposes.ts';
import { KID } from '../../support/constants.ts';
import type { Reply } from '../../support/http.ts';
import { missingPostgres, sharedPostgres } from '../../support/postgres.ts';
import { describeWithTool } from '../../support/tools.ts';
import { apiKey, type Rights, startRightsOn, type Visit } from '../support/rights.ts';

/** A crowd of strangers erases at once, while another node holds the lock that an erasure waits for. */

const CROWD = 40;

describeWithTool('a crowd on PostgreSQL', await missingPostgres(), () => {
  let rights: Rights;
  let holder: pg.Client;
  let watcher: pg.Client;
  let key: string;
  const visits: Visit[] = [];
  beforeAll(async () => {
    const url = await sharedPostgres().freshUrl();
    rights = await startRightsOn(url);
    [holder, watcher] = [new pg.Client({ connectionString: url }), new pg.Client({ connectionString: url })];
    await Promise.all([holder.connect(), watcher.connect()]);
    key = await apiKey(rights, 'secret');
    for (let i = 0; i < CROWD; i += 1)
      visits.push(await rights.visit({ bot: true, device: String(i).padStart(32, 'c') }));
  }, 120_000);
  afterAll(async () => {
    await Promise.all([holder.end(), watcher.end()]);
    await rights.stop();
  });

  const waiting = async (): Promise<number> => {
    const sql =
      "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    return (await watcher.query<{ n: number }>(sql)).rows[0]?.n ?? 0;
  };

  /** Runs the requests while the head of the log is locked. @returns how many connections waited, and the answers */
  async function whileLocked<T>(requests: () => Promise<T>[]) {
    await holder.query(`BEGIN; SELECT 1 FROM ledger_heads WHERE kid = '${KID}' FOR UPDATE`);
    const replies = requests();
    await vi.waitFor(async () => expect(await waiting()).toBeGreaterThan(0), 5000);
    // The others of the crowd have arrived by then, or wait in the queue.
    await sleep(100);
    const connections = await waiting();
    const check = { principalId: 'anna', purpose: DEVICE_IDENTIFICATION };
    const checked = await rights.call('/v1/consent/can-process', check, key);
    const visited = await rights.visit({ device: 'v'.repeat(32) });
    await holder.query('COMMIT');
    expect(checked.status).toBe(200);
    expect(visited.answer.requestId).toMatch(/^req_/);
    return { connections, answers: await Promise.all(replies) };
  }

  const statuses = (answers: readonly Reply[]): number[] => [...new Set(answers.map(({ status }) => status))];

  // Guards against: all ten connections waited for one lock; 72 of 116 erasures were answered 503, checks and visits too.
  it('of objections takes one connection', async () => {
    const file = (visit: Visit) => rights.me(visit, 'contest', { body: { statement: 'This was me.' } });
    const { connections, answers } = await whileLocked(() => visits.slice(0, 3).map(file));
    expect([connections, statuses(answers)]).toEqual([1, [202]]);
  });

  it('of erasures takes one connection, and loses none', async () => {
    const { connections, answers } = await whileLocked(() =>
      visits.slice(3).map((visit) => rights.me(visit, 'forget')),
    );
    expect([connections, statuses(answers)]).toEqual([1, [200]]);
    const remaining = await watcher.query('SELECT request_id FROM decisions WHERE request_id = ANY ($1)', [
      visits.slice(3).map(({ requestId }) => requestId),
    ]);
    expect(remaining.rows).toEqual([]);
    expect(rights.gpd.logs()).not.toMatch(/reload-failed|agents-failed|erasure-held-up/);
  }, 120_000);
});
