import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { ErasureReceipt, Forgotten } from '../../../src/schema/rights.ts';
import { KID } from '../../support/constants.ts';
import { type Rights, startRights } from '../support/rights.ts';

/** A writer of the database lays a trigger beneath a running server: no erasure says that it is complete when it is not. */

let rights: Rights;
beforeAll(async () => {
  rights = await startRights();
});
afterAll(() => rights.stop());
afterEach(() => rights.sql('DROP TRIGGER kept', 'DROP TABLE IF EXISTS stolen'));

const COPY = `CREATE TRIGGER kept BEFORE DELETE ON decisions
  BEGIN INSERT INTO stolen VALUES (OLD.request_id || ' ' || OLD.verdict); END`;

// Guards against: the receipt of `/me` and of `gpd erase` said complete, and the verdict was in another table.
it('a row that is copied elsewhere: storage has failed, and gpd erase exits with 5', async () => {
  const [mine, other] = [
    await rights.visit({ bot: true, device: 'c'.repeat(32) }),
    await rights.visit({ bot: true, device: 'd'.repeat(32) }),
  ];
  await rights.sql('CREATE TABLE stolen (x TEXT)', COPY);
  const reply = await rights.me(mine, 'forget');
  expect(reply.status).toBe(200);
  const { scopes, receiptId } = reply.json() as Forgotten;
  expect(scopes.find(({ scope }) => scope === 'storage')).toMatchObject({ action: 'failed' });
  expect(scopes.find(({ scope }) => scope === 'decisions')).toMatchObject({ action: 'erased' });
  const ran = await rights.gpd.cli([
    'erase',
    '--tenant',
    KID,
    '--request',
    other.requestId,
    '--yes',
    '--json',
  ]);
  expect(ran.code).toBe(5);
  expect(JSON.parse(ran.stdout) as ErasureReceipt).toMatchObject({ incomplete: true });
  const status = await rights.gpd.cli(['erase', 'status', receiptId]);
  expect(status.code).toBe(5);
  expect(status.stdout).toContain('Failed: an id of this person is still in the rewritten database file.');
  const resumed = await rights.gpd.cli(['erase', 'resume', '--json']);
  expect([resumed.code, JSON.parse(resumed.stdout)]).toEqual([5, { resumed: 2, incomplete: 2 }]);
});

it('a row that is not deleted: nothing is erased, and the answer is an error', async () => {
  const mine = await rights.visit({ bot: true, device: 'e'.repeat(32) });
  await rights.sql('CREATE TRIGGER kept BEFORE DELETE ON decisions BEGIN SELECT RAISE(IGNORE); END');
  expect((await rights.me(mine, 'forget')).status).toBe(500);
  const ran = await rights.gpd.cli(['erase', '--tenant', KID, '--request', mine.requestId, '--yes']);
  expect(ran).toMatchObject({ code: 1, stdout: '' });
  expect(ran.stderr).toContain('rows in decisions are not erased');
  expect(await rights.sql(`SELECT 1 FROM decisions WHERE request_id = '${mine.requestId}'`)).toHaveLength(1);
});
