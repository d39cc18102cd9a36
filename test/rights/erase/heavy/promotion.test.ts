import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { expect, it } from 'vitest';
import { missingPostgres, startPostgres } from '../../../support/postgres.ts';
import { describeWithTool } from '../../../support/tools.ts';
import { startRightsOn } from '../../support/rights.ts';

/** An asynchronous standby takes over: it lacks what was committed last, the erasure of a person among it. */
describeWithTool('a promotion under a running server', await missingPostgres(), () => {
  it('brings back nobody whom this node erased, without a restart', async () => {
    const postgres = await startPostgres({ durable: true });
    const url = await postgres.freshUrl();
    const rights = await startRightsOn(url, { intervals: { poll: 20, housekeeping: 20 } });
    const decisions = async (requestId: string): Promise<number | null> => {
      const client = new pg.Client({ connectionString: url });
      try {
        await client.connect();
        const { rows } = await client.query('SELECT 1 FROM decisions WHERE request_id = $1', [requestId]);
        return rows.length;
      } finally {
        await client.end().catch(() => {});
      }
    };
    const files = (...command: readonly string[]): void => {
      execFileSync('cp', ['-a', ...command]);
    };
    const copy = `${postgres.databaseDir}-copy`;
    const stopPostgres = () => postgres.signal('SIGINT', 'postmaster');
    try {
      const visit = await rights.visit();
      await stopPostgres();
      await expect.poll(() => postgres.isGone()).toBe(true);
      files(postgres.databaseDir, copy);
      await postgres.restart();
      await expect.poll(async () => (await rights.me(visit, 'forget')).status).toBe(200);
      expect(await decisions(visit.requestId)).toBe(0);

      await stopPostgres();
      await expect.poll(() => postgres.isGone()).toBe(true);
      execFileSync('rm', ['-rf', postgres.databaseDir]);
      files(copy, postgres.databaseDir);
      writeFileSync(join(postgres.databaseDir, 'standby.signal'), '');
      // It is not up until it takes writes.
      const promoted = postgres.restart();
      await expect.poll(() => decisions(visit.requestId).catch(() => null)).toBe(1);
      await expect.poll(async () => (await fetch(`${rights.gpd.url}/readyz`)).status).toBe(503);
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query('SELECT pg_promote()');
      await client.end();
      await promoted;

      await expect.poll(() => decisions(visit.requestId)).toBe(0);
      await expect.poll(() => rights.gpd.logs()).toContain('erasures-applied-again');
    } finally {
      await rights.stop();
      await postgres.stop();
      execFileSync('rm', ['-rf', copy]);
    }
  });
});
