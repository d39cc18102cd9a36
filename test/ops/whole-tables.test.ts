import { expect, it } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import type { Database } from '../../src/db/engine.ts';
import { rowsOf } from '../../src/db/sql.ts';
import { createContext } from '../../src/ops/doctor/context-service.ts';
import { DATABASE_CHECKS } from '../../src/ops/doctor/database-checks.ts';
import { examine } from '../../src/ops/doctor/doctor-service.ts';
import { oldestWaiting, readLog } from '../../src/ops/doctor/inspect-store.ts';
import { readStock, readTraffic } from '../../src/ops/metrics/stock-store.ts';
import { tally } from '../../src/rights/tally-store.ts';
import { onPostgres } from '../db/contract/makers.ts';
import { noteStatements } from '../support/database.ts';
import { createEntry, NOW } from '../support/make.ts';
import { missingPostgres, sharedPostgres } from '../support/postgres.ts';
import { createRecorder, ensureTenant } from '../support/recorder.ts';
import { describeWithTool } from '../support/tools.ts';

/** Tables with one row per request, event or person. */
const GROWING =
  'decisions|nonces|sightings|visitor_index|network_\\w+|contests|links|webhook_outbox|ledger_entries|audit_log|erasures|consent_\\w+';

const SCAN = new RegExp(
  `(Seq Scan|Bitmap Heap Scan|Index Scan|Index Only Scan)(?: using \\w+)? on (${GROWING})\\b`,
);

/**
 * Finds scans of growing tables without a bound. A condition on an index bounds a scan, and so does a partial index, or a limit
 * on an index.
 */
function unbounded(plan: readonly string[]): string[] {
  return plan.filter((line, i) => {
    const [, access] = SCAN.exec(line) ?? [];
    if (access === undefined || /using webhook_outbox_(lane|failed)/.test(line)) return false;
    if (/^(Seq|Bitmap)/.test(access)) return !/Recheck Cond/.test(plan[i + 1] ?? '');
    if (/(Index|Recheck) Cond/.test(plan[i + 1] ?? '')) return false;
    return !/Limit/.test(plan[i - 1] ?? '') || /Filter/.test(plan[i + 1] ?? '');
  });
}

describeWithTool('gpd status, top and doctor', await missingPostgres(), () => {
  const make = onPostgres(sharedPostgres());

  /** @returns the unbounded scans of all queries that the work sends */
  async function unboundedIn(database: Database, work: () => Promise<unknown>): Promise<string[]> {
    const queries: { readonly sql: string; readonly bindings: readonly unknown[] }[] = [];
    const end = noteStatements(database.read, (query) => queries.push(query));
    await work();
    end();
    const reading = queries.filter(({ sql }) => /^(select|with)/i.test(sql.trim()));
    const scans: string[] = [];
    await database.transaction(async (tx) => {
      for (const { sql, bindings } of reading) {
        const text = sql.replace(/\?/g, '\\?').replace(/\$\d+/g, '?');
        const answer = await tx.raw(`EXPLAIN ${text}`, bindings as never);
        const plan = rowsOf<{ 'QUERY PLAN': string }>(answer).map((row) => row['QUERY PLAN']);
        scans.push(...unbounded(plan).map((line) => `${sql}: ${line.trim()}`));
      }
    });
    expect(reading.length).toBeGreaterThan(10);
    return scans;
  }

  it('read no table whole', async () => {
    const db = await make();
    const { database } = db;
    await ensureTenant(database, 'acme');
    const scans = await unboundedIn(database, async () => {
      await readStock(database, '', NOW);
      await readTraffic(database, NOW);
      const context = createContext(loadConfig({ environment: {} }), { version: '', now: NOW }, database);
      expect(await examine(context, DATABASE_CHECKS)).toMatchObject({ counts: { fail: 1 } });
      await readLog(database, 'acme');
      await oldestWaiting(database, 'acme', 'wh_1');
    });
    expect(scans).toEqual([]);
    await db.close();
  });

  it('count what the overview has counted, and what came since', async () => {
    const db = await make();
    const { database } = db;
    await ensureTenant(database, 'acme');
    const recorder = createRecorder(database);
    const record = (id: string, decidedAt: number) =>
      recorder.record(createEntry({ kid: 'acme', id, decidedAt }));
    await record('a', NOW - 3 * 86_400_000);
    await record('b', NOW - 7_200_000);
    await tally(database, 'acme', NOW - 3_600_000);
    await record('c', NOW - 1000);
    const recent = { lastMinute: 1, lastHour: 1 };
    expect(await readTraffic(database, NOW)).toMatchObject({ ...recent, total: 3, lastDay: 2 });
    // Decisions that the hourly tallies contain are not read again.
    await database.transaction((tx) => tx('tallies').update({ n: 100 }));
    expect(await readTraffic(database, NOW)).toMatchObject({ ...recent, total: 201, lastDay: 101 });
    await db.close();
  });
});
