import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decisionSchema, writeResponseSchema } from '../../../src/schema/consent.ts';
import { executeSealed } from '../../support/database.ts';
import { type Api, PURPOSE, startApi } from './support/api.ts';

const DAY_MS = 86_400_000;

let api: Api;
beforeAll(async () => {
  api = await startApi({
    purposes: [
      { id: 'ads', ttlDays: 1 },
      { id: 'orders', gpc: 'ignore', ttlDays: 365 },
    ],
  });
});
afterAll(() => api.stop());

describe('a person who was never asked', () => {
  it('is denied by a 200, with the head of the log', async () => {
    const decision = await api.check('nobody');
    expect(decisionSchema.strict().parse(decision)).toEqual(decision);
    const lines = (await api.get('/v1/ledger/export')).text.trimEnd().split('\n');
    const { seq, hash } = JSON.parse(lines.at(-1) ?? '') as { seq: number; hash: string };
    expect(decision).toEqual({
      allowed: false,
      reason: 'never-asked',
      proof: { seq, hash },
      policyVersion: 0,
      expiresAt: null,
      given: 'unknown',
    });
  });
});

describe('grant, deny, withdraw', () => {
  it('a grant allows at once, until it expires', async () => {
    const before = Date.now();
    const { seq, hash } = await api.write('grant', { principalId: 'anna', purposes: ['ads'] });
    const decision = await api.check('anna', 'ads');
    expect(decision).toMatchObject({
      allowed: true,
      reason: 'granted',
      proof: { seq, hash },
      policyVersion: 0,
    });
    const expiresAt = Date.parse(decision.expiresAt ?? '');
    expect(expiresAt).toBeGreaterThanOrEqual(before + DAY_MS);
    expect(expiresAt).toBeLessThanOrEqual(Date.now() + DAY_MS);
    expect(await api.check('anna')).toMatchObject({ allowed: false, reason: 'never-asked' });
  });

  it('a withdrawal denies the very next check; a new grant allows again', async () => {
    await api.write('grant', { principalId: 'ben' });
    expect(await api.check('ben')).toMatchObject({ allowed: true });
    const { seq, hash } = await api.write('withdraw', { principalId: 'ben' });
    expect(await api.check('ben')).toEqual({
      allowed: false,
      reason: 'withdrawn',
      proof: { seq, hash },
      policyVersion: 0,
      expiresAt: null,
      given: 'unknown',
    });
    await api.write('grant', { principalId: 'ben' });
    expect(await api.check('ben')).toMatchObject({ allowed: true, reason: 'granted' });
    await api.write('deny', { principalId: 'ben' });
    expect(await api.check('ben')).toMatchObject({ allowed: false, reason: 'denied' });
  });

  it('names every entry, in the order asked for, and the last one outside', async () => {
    const body = { principalId: 'cleo', purposes: ['orders', PURPOSE, 'ads'] };
    const answer = await api.write('grant', body);
    expect(writeResponseSchema.strict().parse(answer)).toEqual(answer);
    expect(answer.entries.map(({ purpose }) => purpose)).toEqual(['orders', PURPOSE, 'ads']);
    const [first, , last] = answer.entries;
    expect(answer).toMatchObject({ seq: last?.seq, hash: last?.hash });
    expect(answer.entries.map(({ seq }) => seq - (first?.seq ?? 0))).toEqual([0, 1, 2]);
  });

  it('a withdrawal of one purpose leaves the others', async () => {
    await api.write('grant', { principalId: 'dora', purposes: ['ads', 'orders'] });
    await api.write('withdraw', { principalId: 'dora', purposes: ['ads'] });
    expect(await api.check('dora', 'ads')).toMatchObject({ reason: 'withdrawn' });
    expect(await api.check('dora', 'orders')).toMatchObject({ reason: 'granted' });
  });

  it('a person may withdraw what was never granted', async () => {
    await api.write('withdraw', { principalId: 'emil' });
    expect(await api.check('emil')).toMatchObject({ reason: 'withdrawn' });
  });

  it('what was answered 201 holds for the very next check, under load', async () => {
    let busy = true;
    const load = Promise.all(
      Array.from({ length: 8 }, async (_, i) => {
        for (let n = 0; busy; n += 1) {
          if (i % 2 === 0) await api.check(`load-${i}`);
          else await api.write(n % 2 === 0 ? 'grant' : 'withdraw', { principalId: `load-${i}` });
        }
      }),
    );
    const outcomes: string[] = [];
    for (let n = 0; n < 25; n += 1) {
      for (const action of ['grant', 'withdraw'] as const) {
        const { seq } = await api.write(action, { principalId: 'fritz' });
        const { reason, proof } = await api.check('fritz');
        outcomes.push(`${action}: ${reason} ${proof.seq - seq}`);
      }
    }
    busy = false;
    await load;
    expect([...new Set(outcomes)].sort()).toEqual(['grant: granted 0', 'withdraw: withdrawn 0']);
  });
});

describe('expiry', () => {
  it('a grant that ran out denies, and a new one starts a new term', async () => {
    const { seq, hash } = await api.write('grant', { principalId: 'gero', purposes: ['ads'] });
    await executeSealed(
      api.gpd.dataDir,
      `UPDATE consent_state SET expires_at = ${Date.now()} WHERE seq = ${seq}`,
    );
    expect(await api.check('gero', 'ads')).toEqual({
      allowed: false,
      reason: 'expired',
      proof: { seq, hash },
      policyVersion: 0,
      expiresAt: null,
      given: 'unknown',
    });
    await api.write('grant', { principalId: 'gero', purposes: ['ads'] });
    expect(await api.check('gero', 'ads')).toMatchObject({ allowed: true });
  });
});

describe('Global Privacy Control', () => {
  it('a grant under it is recorded, and has no effect until a write says that it is gone', async () => {
    const body = { principalId: 'hanna', purposes: [PURPOSE, 'orders'] };
    const { entries } = await api.write('grant', { ...body, gpc: true });
    expect(await api.check('hanna')).toMatchObject({
      allowed: false,
      reason: 'gpc-opt-out',
      proof: { seq: entries[0]?.seq, hash: entries[0]?.hash },
      expiresAt: null,
      given: 'unknown',
    });
    expect(await api.check('hanna', 'orders')).toMatchObject({ allowed: true, reason: 'granted' });
    await api.write('grant', body);
    expect(await api.check('hanna')).toMatchObject({ reason: 'gpc-opt-out' });
    await api.write('grant', { ...body, purposes: [PURPOSE], gpc: false });
    expect(await api.check('hanna')).toMatchObject({ allowed: true, reason: 'granted' });
  });

  it.each(['grant', 'deny', 'withdraw'] as const)(
    'a %s about another purpose never ends an opt-out',
    async (action) => {
      const principalId = `other ${action}`;
      await api.write('grant', { principalId });
      await api.write(action, { principalId, purposes: ['orders'], gpc: true });
      expect(await api.check(principalId)).toMatchObject({ reason: 'gpc-opt-out' });
      for (const purpose of ['orders', 'ads'])
        await api.write(action, { principalId, purposes: [purpose], gpc: false });
      expect(await api.check(principalId)).toMatchObject({ allowed: false, reason: 'gpc-opt-out' });
    },
  );

  it.each(['deny', 'withdraw'] as const)('a %s of the purpose itself does not end it', async (action) => {
    const principalId = `own ${action}`;
    await api.write('grant', { principalId, gpc: true });
    await api.write(action, { principalId, gpc: false });
    expect(await api.check(principalId)).toMatchObject({ reason: 'gpc-opt-out' });
  });

  it('a new signal counts for what an earlier grant took out of it', async () => {
    await api.write('grant', { principalId: 'nils', purposes: ['ads', PURPOSE], gpc: true });
    await api.write('grant', { principalId: 'nils', purposes: ['ads'], gpc: false });
    expect(await api.check('nils', 'ads')).toMatchObject({ allowed: true });
    expect(await api.check('nils')).toMatchObject({ reason: 'gpc-opt-out' });
    await api.write('withdraw', { principalId: 'nils', purposes: ['orders'], gpc: true });
    expect(await api.check('nils', 'ads')).toMatchObject({ allowed: false, reason: 'gpc-opt-out' });
  });

  it('holds for every purpose that heeds it, those never asked for included', async () => {
    await api.write('deny', { principalId: 'ida', purposes: ['ads'], gpc: true });
    expect(await api.check('ida', 'ads')).toMatchObject({ reason: 'gpc-opt-out' });
    expect(await api.check('ida')).toMatchObject({ reason: 'gpc-opt-out' });
    expect(await api.check('ida', 'orders')).toMatchObject({ reason: 'never-asked' });
  });

  it('a later withdrawal stands when the signal is gone', async () => {
    await api.write('grant', { principalId: 'jan', gpc: true });
    await api.write('grant', { principalId: 'jan', gpc: false });
    await api.write('withdraw', { principalId: 'jan' });
    expect(await api.check('jan')).toMatchObject({ allowed: false, reason: 'withdrawn' });
  });

  it('is kept for each person apart', async () => {
    await api.write('grant', { principalId: 'kai', gpc: true });
    await api.write('grant', { principalId: 'lea' });
    expect(await api.check('lea')).toMatchObject({ allowed: true });
  });
});
