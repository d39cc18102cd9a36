import { expect, it } from 'vitest';
import { startProcess } from '../../../support/process.ts';
import { startRightsProcess } from '../../support/rights.ts';

it('kill -9 in the middle of the steps of a large erasure leaves a receipt that a start finishes', async () => {
  const rights = await startRightsProcess();
  const visit = await rights.visit();
  const rowCount = 20_000;
  await rights.sql(
    `INSERT INTO decisions WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rowCount})
      SELECT kid, 'req_many' || i, decided_at, class, durable, verdict, salt, commitment FROM decisions, n`,
  );
  const token = await rights.as({ gpd_role: 'dpo', sub: 'dora' });
  const call = rights.call('/privacy/erase', { visitorId: visit.visitorId }, token).catch(() => null);
  const countRows = async (): Promise<number> =>
    Number((await rights.sql('SELECT COUNT(*) AS n FROM decisions'))[0]?.['n']);
  await expect.poll(countRows, { interval: 5, timeout: 20_000 }).toBeLessThan(rowCount);
  await rights.gpd.kill9();
  await call;
  expect(await countRows()).toBeGreaterThan(0);
  expect(await rights.sql('SELECT receipt_id FROM erasing')).toHaveLength(1);
  const gpd = await startProcess({ dataDir: rights.gpd.dataDir, settings: rights.idp.settings });
  await gpd.json(['erase', 'resume']);
  expect(await countRows()).toBe(0);
  expect(await rights.sql('SELECT state FROM erasures')).toEqual([{ state: 'done' }]);
  await gpd.stop();
  await rights.idp.stop();
});
