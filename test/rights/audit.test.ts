import { afterAll, beforeAll, expect, it } from 'vitest';
import { HOUR } from '../../src/lib/clock.ts';
import { anchorAudit } from '../../src/log/anchors.ts';
import { KID, REASON } from '../support/constants.ts';
import { sealProblems } from '../support/verify.ts';
import { open } from './support/eraser.ts';
import { type Rights, startRights } from './support/rights.ts';

/** Every staff action and every rights action leaves one row, and the rows are sealed into the tenant's log. */

let rights: Rights;
beforeAll(async () => {
  rights = await startRights();
});
afterAll(() => rights.stop());

it('the audit log has a row for each action by keyed reference, is sealed, and a changed or a missing row is noticed', async () => {
  const visit = await rights.visit({ bot: true });
  const subject = await rights.as({
    gpd_role: 'subject',
    sub: 'anna@example.org',
    gpd_visitor: visit.visitorId,
  });
  const reviewer = await rights.as({ gpd_role: 'reviewer', sub: 'rita@example.org' });
  const filed = await rights.call(
    '/privacy/contest',
    { requestId: visit.requestId, statement: 'secret words' },
    subject,
  );
  const { contestId } = filed.json() as { contestId: string };
  await rights.call('/privacy/contest', { requestId: visit.requestId }, subject);
  const ruling = { contestId, outcome: 'upheld', reason: REASON };
  await rights.call('/privacy/contest/resolve', ruling, reviewer);
  await rights.call('/privacy/contest/resolve', ruling, reviewer);
  await rights.call('/privacy/dsar', {}, subject);
  await rights.call('/privacy/erase', {}, subject);
  const rows = await rights.sql('SELECT role, actor, action, object, detail FROM audit_log ORDER BY seq');
  expect(rows.map((row) => `${String(row['role'])} ${String(row['action'])}`)).toEqual([
    'subject contest.filed',
    'reviewer contest.resolved',
    'subject dsar.exported',
    'subject subject.erased',
  ]);
  const text = JSON.stringify(rows);
  for (const secret of ['anna', 'rita', 'secret words', REASON, visit.requestId, visit.visitorId, contestId])
    expect(text).not.toContain(secret);
  expect(new Set(rows.filter((row) => row['role'] === 'subject').map((row) => row['actor'])).size).toBe(1);

  const { database, tenant } = await open(rights.gpd.dataDir);
  try {
    expect(await anchorAudit(database, KID, Date.now() + 2 * HOUR, tenant.stateMac)).toBe(1);
    expect(await sealProblems(database, KID)).toEqual([]);
    expect(await rights.gpd.json(['consent', 'verify', KID])).toMatchObject({ ok: true });
    await rights.sql("UPDATE audit_log SET role = 'dpo' WHERE action = 'contest.resolved'");
    expect(await sealProblems(database, KID)).toEqual([expect.stringMatching(/^audit row \d+ was changed$/)]);
    const broken = await rights.gpd.cli(['consent', 'verify', KID, '--json']);
    expect({ code: broken.code, ok: (JSON.parse(broken.stdout) as { ok: boolean }).ok }).toEqual({
      code: 1,
      ok: false,
    });
    await rights.sql("DELETE FROM audit_log WHERE action = 'contest.resolved'");
    expect(await sealProblems(database, KID)).toEqual([
      expect.stringMatching(/^1 of 4 audit rows of .* are missing$/),
    ]);
  } finally {
    await database.close();
  }
});
