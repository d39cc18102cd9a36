import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ErasureReceipt } from '../../../src/schema/rights.ts';
import { KID, ORIGIN } from '../../support/constants.ts';
import { apiKey, type Rights, startRights } from '../support/rights.ts';

let rights: Rights;
beforeAll(async () => {
  rights = await startRights();
});
afterAll(() => rights.stop());

// Guards against: the device of a linked request stayed, the receipt did not say so, and its request led nowhere.
it('an erasure of a principal names what it leaves of a linked device, and the request leads there', async () => {
  const key = await apiKey(rights, 'secret');
  const opened = await rights.call('/v1/sessions', { principalId: 'anna' }, key);
  const { token } = opened.json() as { token: string };
  const visit = await rights.visit({ bot: true });
  const cookie = `gp_session=${visit.session}`;
  const linked = await rights.call('/v1/principals/link', { token: visit.token }, token, {
    cookie,
    origin: ORIGIN,
  });
  expect(linked.status).toBe(201);
  const erase = async (option: string, id: string) => {
    const ran = await rights.gpd.cli(['erase', '--tenant', KID, option, id, '--yes', '--json']);
    return { code: ran.code, receipt: JSON.parse(ran.stdout || 'null') as ErasureReceipt | null };
  };
  const first = await erase('--principal', 'anna');
  expect(first).toMatchObject({ code: 0, receipt: { incomplete: false } });
  const scopeOf = (receipt: ErasureReceipt | null, name: string) =>
    receipt?.scopes.find(({ scope }) => scope === name);
  const basis = expect.stringContaining('about a linked device, which others may use too');
  for (const name of ['sightings', 'visitor-index'])
    expect(scopeOf(first.receipt, name)).toEqual({ scope: name, action: 'retained', count: 1, basis });
  expect(scopeOf(first.receipt, 'decisions')).toMatchObject({ action: 'erased', count: 1 });
  const second = await erase('--request', visit.requestId);
  expect(second.code).toBe(0);
  for (const name of ['sightings', 'visitor-index'])
    expect(scopeOf(second.receipt, name)).toMatchObject({ action: 'erased', count: 1 });
  expect(await rights.sql('SELECT 1 FROM sightings', 'SELECT 1 FROM visitor_index')).toEqual([]);
  expect(await erase('--request', visit.requestId)).toEqual({ code: 3, receipt: null });
});
