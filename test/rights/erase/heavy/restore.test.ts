import { cpSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tempDir } from '../../../support/command.ts';
import { KID } from '../../../support/constants.ts';
import { expectError } from '../../../support/expect.ts';
import { startProcess } from '../../../support/process.ts';
import { apiKey, type Rights, rightsOf, startRightsProcess, type Visit } from '../../support/rights.ts';

/** An older database comes back: what was erased after it was made stays erased. */

let rights: Rights;
let secret: string;
beforeAll(async () => {
  rights = await startRightsProcess();
  secret = await apiKey(rights, 'secret');
});
afterAll(() => rights.stop());

const DATABASE = ['gpd.db', 'gpd.db-wal', 'gpd.db-shm'];

async function subject(visit: Visit, sub: string): Promise<string> {
  return rights.as({ gpd_role: 'subject', sub, gpd_visitor: visit.visitorId });
}

it('applies every erasure again before it listens, once, and leaves others alone', async () => {
  const mine = await rights.visit();
  const stays = await rights.visit();
  const linked = await rights.visit();
  await rights.call(
    '/v1/consent/grant',
    { principalId: 'paul', purposes: ['device-identification'] },
    secret,
  );
  const session = (await rights.call('/v1/sessions', { principalId: 'lena' }, secret)).json() as {
    token: string;
  };
  const headers = { cookie: `gp_session=${linked.session}`, origin: 'https://shop.example' };
  expect(
    (await rights.call('/v1/principals/link', { token: linked.token }, session.token, headers)).status,
  ).toBe(201);
  const durable = await rights.sql(`SELECT durable FROM decisions WHERE request_id = '${mine.requestId}'`);

  const old = tempDir('old-backup');
  await rights.sql('PRAGMA wal_checkpoint(TRUNCATE)');
  cpSync(join(rights.gpd.dataDir, 'gpd.db'), join(old, 'gpd.db'));

  const erased = (await rights.call('/privacy/erase', {}, await subject(mine, 'anna'))).json();
  expect(erased).toMatchObject({ incomplete: false });
  expect(
    (await rights.call('/privacy/erase', {}, await rights.as({ gpd_role: 'subject', sub: 'lena' }))).status,
  ).toBe(200);
  const dpo = await rights.as({ gpd_role: 'dpo', sub: 'dora' });
  await rights.call('/privacy/erase', { principalId: 'paul' }, dpo);

  await rights.gpd.stop();
  const { dataDir } = rights.gpd;
  for (const name of DATABASE) rmSync(join(dataDir, name), { force: true });
  cpSync(join(old, 'gpd.db'), join(dataDir, 'gpd.db'));
  expect(readFileSync(join(dataDir, 'gpd.db')).includes(mine.requestId)).toBe(true);

  const gpd = await startProcess({ dataDir, settings: { ...rights.idp.settings, GPD_RATE_PRIVACY: 'off' } });
  const restored = rightsOf(gpd, rights.idp, [rights.acme, rights.other]);
  for (const { requestId } of [mine, linked])
    expectError(await restored.decision(requestId, secret), 'no-such-decision');
  expect((await restored.decision(stays.requestId, secret)).status).toBe(200);
  const check = { principalId: 'paul', purpose: 'device-identification' };
  expect((await restored.call('/v1/consent/can-process', check, secret)).json()).toMatchObject({
    reason: 'erased',
  });
  expect(gpd.logs()).toContain('erasures-applied-again');
  expect(await gpd.json(['consent', 'verify', KID])).toMatchObject({ ok: true });
  expect(await gpd.json(['erase', 'status', (erased as { receiptId: string }).receiptId])).toMatchObject({
    receiptId: (erased as { receiptId: string }).receiptId,
    erasedAt: (erased as { erasedAt: string }).erasedAt,
    incomplete: false,
  });
  const ids = [mine.requestId, mine.visitorId, linked.requestId, String(durable[0]?.['durable'])];
  const files = readdirSync(dataDir)
    .map((name) => join(dataDir, name))
    .filter((path) => statSync(path).isFile());
  for (const path of files)
    for (const id of ids) expect(readFileSync(path).includes(id), `${id} in ${path}`).toBe(false);
  await gpd.stop();

  const again = await startProcess({ dataDir, settings: rights.idp.settings });
  expect(again.logs()).not.toContain('erasures-applied-again');
  await again.stop();
});

describe('kill -9', () => {
  it('in the middle of the steps of a large erasure leaves a receipt that a start finishes', async () => {
    const second = await startRightsProcess();
    const visit = await second.visit();
    const rowCount = 20_000;
    await second.sql(
      `INSERT INTO decisions WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rowCount})
        SELECT kid, 'req_many' || i, decided_at, class, durable, verdict, salt, commitment FROM decisions, n`,
    );
    const token = await second.as({ gpd_role: 'dpo', sub: 'dora' });
    const call = second.call('/privacy/erase', { visitorId: visit.visitorId }, token).catch(() => null);
    const countRows = async (): Promise<number> =>
      Number((await second.sql('SELECT COUNT(*) AS n FROM decisions'))[0]?.['n']);
    await expect.poll(countRows, { interval: 5, timeout: 20_000 }).toBeLessThan(rowCount);
    await second.gpd.kill9();
    await call;
    expect(await countRows()).toBeGreaterThan(0);
    expect(await second.sql('SELECT receipt_id FROM erasing')).toHaveLength(1);
    const gpd = await startProcess({ dataDir: second.gpd.dataDir, settings: second.idp.settings });
    await gpd.json(['erase', 'resume']);
    expect(await countRows()).toBe(0);
    expect(await second.sql('SELECT step FROM erasures')).toEqual([{ step: 'done' }]);
    await gpd.stop();
    await second.idp.stop();
  });
});
