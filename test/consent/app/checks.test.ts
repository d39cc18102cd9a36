import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { batchResponseSchema } from '../../../src/schema/consent.ts';
import { expectError } from '../../support/expect.ts';
import { type Api, type Decision, PURPOSE, startApi } from './support/api.ts';

const CHECK = '/v1/consent/can-process';
const BATCH = `${CHECK}/batch`;

let api: Api;
beforeAll(async () => {
  api = await startApi({ purposes: [{ id: 'ads' }] });
});
afterAll(() => api.stop());

interface BatchCheck {
  readonly id: string;
  readonly principalId: string;
  readonly purpose: string;
}

async function checkAll(checks: readonly BatchCheck[]): Promise<(Decision & { id: string })[]> {
  const reply = await api.post(BATCH, { checks });
  expect(reply.status).toBe(200);
  expect(reply.headers['cache-control']).toBe('no-store');
  return (reply.json() as { results: (Decision & { id: string })[] }).results;
}

const repeated = (count: number): BatchCheck[] =>
  Array.from({ length: count }, (_, i) => ({ id: `c${i}`, principalId: `p${i % 7}`, purpose: PURPOSE }));

describe('a batch', () => {
  it('answers in the order asked, with the ids of the caller, as single checks do', async () => {
    await api.write('grant', { principalId: 'p1' });
    await api.write('withdraw', { principalId: 'p2' });
    const checks = [
      { id: 'b', principalId: 'p2', purpose: PURPOSE },
      { id: 'a', principalId: 'p1', purpose: PURPOSE },
      { id: 'a', principalId: 'p1', purpose: 'ads' },
      { id: '🐢 "<', principalId: 'p3', purpose: 'nobody-defined-it' },
    ];
    const results = await checkAll(checks);
    expect(batchResponseSchema.strict().parse({ results })).toEqual({ results });
    const singles = await Promise.all(
      checks.map(async ({ id, principalId, purpose }) => ({
        id,
        ...(await api.check(principalId, purpose)),
      })),
    );
    expect(results).toEqual(singles);
    expect(results.map(({ reason }) => reason)).toEqual([
      'withdrawn',
      'granted',
      'never-asked',
      'unknown-purpose',
    ]);
  });

  it('takes 100 checks and not 101, and at least one', async () => {
    const results = await checkAll(repeated(100));
    expect(results.map(({ id }) => id)).toEqual(repeated(100).map(({ id }) => id));
    expectError(await api.post(BATCH, { checks: repeated(101) }), 'invalid-request');
    expectError(await api.post(BATCH, { checks: [] }), 'invalid-request');
  });
});

describe('minSeq', () => {
  const check = (minSeq: unknown, principalId = 'seq') =>
    api.post(CHECK, { principalId, purpose: PURPOSE, minSeq });
  const head = async (): Promise<number> => (await api.check('never-seen')).proof.seq;

  it('that the log has reached is answered as ever', async () => {
    const { seq } = await api.write('grant', { principalId: 'seq' });
    for (const minSeq of [0, seq]) {
      expect((await check(minSeq)).json()).toMatchObject({ allowed: true, proof: { seq } });
    }
  });

  it('that it has not reached is 503', async () => {
    const next = (await head()) + 1;
    const reply = await check(next);
    expectError(reply, 'unavailable');
    expect(reply.headers['retry-after']).toMatch(/^[1-9]\d*$/);
  });

  it('that is reached while it waits is answered with what was written', async () => {
    const next = (await head()) + 1;
    const waiting = check(next, 'late');
    await new Promise((resolve) => setTimeout(resolve, 60));
    const { seq } = await api.write('grant', { principalId: 'late' });
    const reply = await waiting;
    expect(seq).toBe(next);
    expect(reply.json()).toMatchObject({ allowed: true, reason: 'granted', proof: { seq } });
  });

  it.each([-1, 1.5, '1', null, 1e300])('%j is refused', async (minSeq) => {
    expectError(await check(minSeq), 'invalid-request');
  });
});
