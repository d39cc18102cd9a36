import { beforeAll, describe, expect, it } from 'vitest';
import { MINUTE } from '../../src/lib/clock.ts';
import type { suggestWeights } from '../../src/rights/proposal.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { expectError } from '../support/expect.ts';
import { postJson } from '../support/http.ts';
import { started } from '../support/started.ts';
import { apiKey, startRights } from './support/rights.ts';

/** POST /v1/decisions/{id}/outcome (contract-2 section 18). */

const rights = started(() => startRights());
let secret: string;
beforeAll(async () => {
  secret = await apiKey(rights, 'secret');
});

const pathOf = (id: string): string => `/v1/decisions/${id}/outcome`;
const report = (id: string, body: unknown, key = secret) => rights.call(pathOf(id), body, key);
const visit = async (): Promise<string> => (await rights.visit({ bot: true })).requestId;

describe('the outcome of a decision', () => {
  it('is taken once, and the same again is the same', async () => {
    const id = await visit();
    const at = '2026-05-04T10:00:00.000Z';
    const first = await report(id, { outcome: 'fraud', at });
    expect(first.status).toBe(201);
    expect(first.json()).toEqual({ requestId: id, outcome: 'fraud', at });
    expect(first.headers['cache-control']).toBe('no-store');
    // The first two bodies name the same instant; the third names none.
    for (const repeat of [
      { outcome: 'fraud', at },
      { outcome: 'fraud', at: '2026-05-04T12:00:00+02:00' },
      { outcome: 'fraud' },
    ]) {
      const again = await report(id, repeat);
      expect([repeat, again.status, again.json()]).toEqual([repeat, 200, first.json()]);
    }
    for (const other of [
      { outcome: 'chargeback', at },
      { outcome: 'fraud', at: '2026-05-04T10:00:00.001Z' },
    ])
      expectError(await report(id, other), 'idempotency-conflict');
  });

  it('has the time it came in where none is named', async () => {
    const id = await visit();
    const before = Date.now();
    const { at } = (await report(id, { outcome: 'other' })).json() as { at: string };
    expect(Date.parse(at)).toSatisfy((ms: number) => ms >= before && ms <= Date.now());
    expect((await report(id, { outcome: 'other', at })).status).toBe(200);
    expectError(await report(id, { outcome: 'other', at: '2026-01-01T00:00:00Z' }), 'idempotency-conflict');
  });

  it('is refused in any other shape, and in the future', async () => {
    const id = await visit();
    const future = (ms: number): string => new Date(Date.now() + ms).toISOString();
    for (const body of [
      {},
      null,
      { outcome: 'Fraud' },
      { outcome: 'fraud', why: 'x' },
      { outcome: 'fraud', at: null },
      { outcome: 'fraud', at: 1_700_000_000_000 },
      { outcome: 'fraud', at: '2026-05-04' },
      { outcome: 'fraud', at: '2026-05-04T10:00:00' },
      { outcome: 'fraud', at: '2026-02-30T10:00:00Z' },
      { outcome: 'fraud', at: '0000-01-01T00:00:00+01:00' },
      { outcome: 'fraud', at: future(6 * MINUTE) },
    ])
      expectError(await report(id, body), 'invalid-request');
    expectError(await rights.call(pathOf(id), undefined, secret), 'invalid-json');
    // Clocks differ by as much as a bundle's may.
    expect((await report(id, { outcome: 'fraud', at: future(4 * MINUTE) })).status).toBe(201);
  });

  it('needs a secret key of its tenant', async () => {
    const id = await visit();
    for (const scope of ['publishable', 'read-only', 'operator'])
      expectError(await report(id, { outcome: 'fraud' }, await apiKey(rights, scope)), 'insufficient-scope');
    expectError(await report(id, { outcome: 'fraud' }, 'gpd_sk_wrong'), 'unauthenticated');
    expectError(await rights.call(pathOf(id), { outcome: 'fraud' }), 'unauthenticated');
    const theirs = (await rights.visit({ target: rights.other, origin: ORIGIN })).requestId;
    for (const unknownId of [theirs, 'req_00000000000000000000000000', 'req_x', '%20', `${id}0`]) {
      expectError(await report(unknownId, { outcome: 'fraud' }), 'no-such-decision');
      expectError(await rights.decision(unknownId, secret), 'no-such-decision');
    }
    const preflight = { origin: ORIGIN, authorization: `Bearer ${secret}` };
    const reply = await postJson(rights.gpd.url, pathOf(id), { outcome: 'fraud' }, preflight);
    expect(reply.headers['access-control-allow-origin']).toBeUndefined();
  });

  it('changes nothing of the verdict that is read, is exported with it and erased with it', async () => {
    const sub = 'somebody-with-an-outcome';
    const { requestId, visitorId } = await rights.visit({ device: '7'.repeat(32), bot: true });
    const before = (await rights.decision(requestId, secret)).json();
    await report(requestId, { outcome: 'passed-step-up', at: '2026-05-04T10:00:00Z' });
    expect((await rights.decision(requestId, secret)).json()).toEqual(before);
    const token = await rights.as({ gpd_role: 'subject', sub, gpd_visitor: visitorId });
    const { decisions } = (await rights.call('/privacy/dsar', {}, token)).json() as { decisions: object[] };
    expect(decisions[0]).toMatchObject({
      reportedOutcome: { outcome: 'passed-step-up', at: '2026-05-04T10:00:00.000Z' },
    });
    await rights.call('/privacy/erase', {}, token);
    expect(await rights.sql(`SELECT 1 FROM decision_outcomes WHERE request_id = '${requestId}'`)).toEqual([]);
    expectError(await report(requestId, { outcome: 'passed-step-up' }), 'no-such-decision');
  });

  it('is counted by rule, on automation alone', async () => {
    const reviews = () =>
      rights.sql(
        `SELECT upheld, overturned, confirmed, mistaken FROM rule_reviews WHERE kid = '${KID}' AND rule = 'A2'`,
      );
    await rights.sql('DELETE FROM rule_reviews');
    const person = (await rights.visit({ device: '8'.repeat(32) })).requestId;
    await report(person, { outcome: 'fraud' });
    await report(await visit(), { outcome: 'other' });
    expect(await rights.sql('SELECT * FROM rule_reviews')).toEqual([]);
    for (const outcome of ['fraud', 'chargeback', 'false-alarm'])
      for (const again of [1, 2])
        expect(again && (await report(await visit(), { outcome })).status).toBe(201);
    expect(await reviews()).toEqual([{ upheld: 0, overturned: 0, confirmed: 4, mistaken: 2 }]);
  });

  it('is what `gpd policy propose` reads, which changes nothing', async () => {
    for (let i = 0; i < 20; i += 1) await report(await visit(), { outcome: 'false-alarm' });
    const before = await rights.sql('SELECT * FROM tenant_policies');
    const found = (await rights.gpd.json(['policy', 'propose', KID])) as ReturnType<typeof suggestWeights>;
    expect(found).toMatchObject({ kid: KID, policy: { monitors: { agents: [], networks: [] } } });
    const a2 = found.rules.find(({ rule }) => rule === 'A2');
    expect(a2?.wrong).toBeGreaterThanOrEqual(20);
    expect(a2?.proposed).toBe('off');
    const { stdout, code } = await rights.gpd.cli(['policy', 'propose', KID]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^A2 +\d+ +\d+ +\d+-\d+ % +0\.90 +off$/m);
    expect(stdout).toContain('Nothing was changed.');
    expect((await rights.gpd.cli(['policy', 'propose', 'nobody'])).code).toBe(3);
    expect((await rights.gpd.cli(['policy', 'propose'])).code).toBe(2);
    expect(await rights.sql('SELECT * FROM tenant_policies')).toEqual(before);
  });
});
