import { expect, it } from 'vitest';
import { HOUR } from '../../src/lib/clock.ts';
import { anchorAudit } from '../../src/log/anchors-store.ts';
import { KID, REASON } from '../support/constants.ts';
import { started } from '../support/started.ts';
import { sealProblems } from '../support/verify.ts';
import { AT_ONCE, startDeliveries } from './support/deliveries.ts';
import { open } from './support/eraser.ts';
import { startRights } from './support/rights.ts';

/** Every action leaves one row, sealed into the tenant's log, and whoever acts on a decision is told of its contest. */

const rights = started(() => startRights({ app: AT_ONCE }));
const webhook = started(() => startDeliveries(rights));

it('each action has a row by keyed reference; a changed or a missing row is noticed; a webhook is signed', async () => {
  const visit = await rights.visit({ bot: true });
  const { requestId, visitorId } = visit;
  const dataOf = (type: string) =>
    webhook.deliveries.find((delivery) => delivery.type === type && delivery.data['requestId'] === requestId)
      ?.data;
  const subject = await rights.as({ gpd_role: 'subject', sub: 'anna@example.org', gpd_visitor: visitorId });
  const reviewer = await rights.as({ gpd_role: 'reviewer', sub: 'rita@example.org' });
  const filed = await rights.call('/privacy/contest', { requestId, statement: 'secret words' }, subject);
  const { contestId } = filed.json() as { contestId: string };
  await expect.poll(() => dataOf('contest.filed')).toMatchObject({ contestId, restricted: true });
  await rights.call('/privacy/contest', { requestId }, subject);
  const ruling = { contestId, outcome: 'upheld', reason: REASON };
  for (let i = 0; i < 2; i += 1) await rights.call('/privacy/contest/resolve', ruling, reviewer);
  await expect.poll(() => dataOf('contest.resolved')).toMatchObject({ ...ruling, restricted: false });
  expect(webhook.unsigned).toEqual([]);
  await rights.call('/privacy/dsar', {}, subject);
  await rights.call('/privacy/erase', {}, subject);
  const rows = await rights.sql('SELECT role, actor, action, object, detail FROM audit_log ORDER BY seq');
  expect(rows.map((row) => `${String(row['role'])} ${String(row['action'])}`)).toEqual([
    'operator webhook.added',
    'subject contest.filed',
    'reviewer contest.resolved',
    'subject dsar.exported',
    'subject subject.erased',
  ]);
  const text = JSON.stringify(rows);
  for (const private_ of ['anna', 'rita', 'secret words', REASON, requestId, visitorId, contestId])
    expect(text).not.toContain(private_);
  expect(new Set(rows.filter((row) => row['role'] === 'subject').map((row) => row['actor'])).size).toBe(1);

  const { database, tenant } = await open(rights.gpd.dataDir);
  try {
    expect(await anchorAudit(database, KID, Date.now() + 2 * HOUR, tenant.stateMac)).toBe(1);
    expect(await sealProblems(database, KID)).toEqual([]);
    expect(await rights.gpd.json(['consent', 'verify', KID])).toMatchObject({ ok: true });
    await rights.sql("UPDATE audit_log SET role = 'dpo' WHERE action = 'contest.resolved'");
    expect(await sealProblems(database, KID)).toEqual([expect.stringMatching(/^audit row \d+ was changed$/)]);
    const broken = await rights.gpd.cli(['consent', 'verify', KID, '--json']);
    expect([broken.code, (JSON.parse(broken.stdout) as { ok: boolean }).ok]).toEqual([1, false]);
    await rights.sql("DELETE FROM audit_log WHERE action = 'contest.resolved'");
    expect(await sealProblems(database, KID)).toEqual([
      expect.stringMatching(/^1 of 5 audit rows of .* are missing$/),
    ]);
  } finally {
    await database.close();
  }
});
