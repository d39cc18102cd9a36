import { describe, expect, it } from 'vitest';
import { batchResponseSchema } from '../../../src/schema/consent.ts';
import { KID } from '../../support/constants.ts';
import { expectError } from '../../support/expect.ts';
import { started } from '../../support/started.ts';
import { type Action, type Decision, PURPOSE, startApi, type WriteBody } from './support/api.ts';

interface Event {
  readonly seq: number;
  readonly type: string;
  readonly purpose: string;
  readonly time: string;
}

interface Page {
  readonly principalId: string;
  readonly events: readonly Event[];
  readonly nextCursor: string | null;
}

const api = started(() => startApi({ purposes: [{ id: 'ads' }, { id: 'orders', gpc: 'ignore' }] }));

async function history(principalId: string, page: object = {}): Promise<Page> {
  const reply = await api.post('/v1/consent/history', { principalId, ...page });
  expect(reply.status).toBe(200);
  return reply.json() as Page;
}

describe('state', () => {
  it('lists the built-in purpose device-attestation once the person decided about it', async () => {
    const purposesOf = async () =>
      (
        (await api.post('/v1/consent/state', { principalId: 'keyed' })).json() as {
          purposes: { purpose: string }[];
        }
      ).purposes;
    const before = (await purposesOf()).map(({ purpose }) => purpose);
    expect(before).not.toContain('device-attestation');
    await api.write('grant', { principalId: 'keyed', purposes: ['device-attestation'] });
    const after = await purposesOf();
    expect(after.map(({ purpose }) => purpose)).toEqual([...before, 'device-attestation']);
    expect(after.at(-1)).toMatchObject({ choice: 'granted', allowed: true, reason: 'granted' });
  });
});

describe('history', () => {
  it('tells the signal that a write was under, also where the write said nothing of it', async () => {
    const body: WriteBody = { principalId: 'gpc', purposes: ['ads'] };
    for (const gpc of [true, undefined, false, undefined])
      await api.write('grant', gpc === undefined ? body : { ...body, gpc });
    const { events } = await history('gpc');
    expect(events).toMatchObject([{ gpc: false }, { gpc: false }, { gpc: true }, { gpc: true }]);
  });

  it('is whole on the command line, however long it is', async () => {
    for (let i = 0; i < 101; i += 1)
      await api.write(i % 2 === 0 ? 'grant' : 'deny', { principalId: 'long', purposes: ['ads', 'orders'] });
    const history = await api.gpd.json<{ events: { seq: number }[] }>(['consent', 'history', KID, 'long']);
    expect(history.events).toHaveLength(202);
    expect(new Set(history.events.map(({ seq }) => seq)).size).toBe(202);
  });

  it('tells every event with its circumstances, newest first', async () => {
    const body: WriteBody = { principalId: 'anna', purposes: ['ads', 'orders'] };
    const before = Date.now();
    const granted = await api.write('grant', body);
    const denied = await api.write('deny', { ...body, gpc: true });
    const withdrawn = await api.write('withdraw', { ...body, purposes: ['ads'], gpc: true });
    const { events, nextCursor } = await history('anna');
    expect(nextCursor).toBeNull();
    expect(events.map(({ seq }) => seq)).toEqual(
      [...granted.entries, ...denied.entries, ...withdrawn.entries].map(({ seq }) => seq).reverse(),
    );
    expect(events.map(({ type, purpose }) => `${type} ${purpose}`)).toEqual([
      'consent.withdrawn ads',
      'consent.denied orders',
      'consent.gpc-opt-out ads',
      'consent.granted orders',
      'consent.granted ads',
    ]);
    expect(events[1]).toMatchObject({ gpc: true, source: 'backend', policyVersion: 0, expiresAt: null });
    expect(events[4]).toMatchObject({ gpc: false, expiresAt: expect.stringMatching(/^\d{4}-.*Z$/) });
    for (const { time } of events) {
      expect(Date.parse(time)).toBeGreaterThanOrEqual(before);
      expect(Date.parse(time)).toBeLessThanOrEqual(Date.now());
    }
  });

  it('pages through all of it, without a gap or a repetition, while more is written', async () => {
    const seqs: number[] = [];
    for (let i = 0; i < 7; i += 1) {
      seqs.unshift((await api.write(i % 2 === 0 ? 'grant' : 'withdraw', { principalId: 'ben' })).seq);
    }
    const pages: number[][] = [];
    let cursor: string | null = null;
    do {
      const page: Page = await history('ben', cursor === null ? { limit: 3 } : { limit: 3, cursor });
      pages.push(page.events.map(({ seq }) => seq));
      cursor = page.nextCursor;
      await api.write('grant', { principalId: 'ben' });
    } while (cursor !== null && pages.length < 10);
    expect(pages.flat()).toEqual(seqs);
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 1]);
  });

  it('the last full page has no cursor', async () => {
    for (let i = 0; i < 4; i += 1) await api.write('grant', { principalId: 'cleo' });
    const first = await history('cleo', { limit: 2 });
    const second = await history('cleo', { limit: 2, cursor: first.nextCursor });
    expect(second).toMatchObject({ events: [{}, {}], nextCursor: null });
    expect(await history('cleo', { limit: 4 })).toMatchObject({ nextCursor: null });
  });

  it('shows 50 by default, and at most 200', async () => {
    const purposes = [PURPOSE, 'ads', 'orders'];
    for (let i = 0; i < 18; i += 1) await api.write('grant', { principalId: 'dora', purposes });
    const { events, nextCursor } = await history('dora');
    expect(events).toHaveLength(50);
    expect(nextCursor).toBe(String(events.at(-1)?.seq));
    expect((await history('dora', { limit: 200 })).events).toHaveLength(54);
  });

  it.each([{ limit: 0 }, { limit: 201 }, { cursor: 'x' }, { cursor: '1'.repeat(17) }])(
    '%j is refused',
    async (page) => {
      expectError(await api.post('/v1/consent/history', { principalId: 'a', ...page }), 'invalid-request');
    },
  );
});

describe('state', () => {
  it('tells every purpose of the tenant: what was chosen, and what follows', async () => {
    const { seq, hash } = await api.write('grant', { principalId: 'emil', purposes: ['ads'] });
    await api.write('withdraw', { principalId: 'emil', purposes: ['orders'] });
    const reply = await api.post('/v1/consent/state', { principalId: 'emil' });
    expect(reply.status).toBe(200);
    const { principalId, purposes } = reply.json() as { principalId: string; purposes: object[] };
    expect(principalId).toBe('emil');
    expect(purposes).toEqual([
      expect.objectContaining({
        purpose: 'ads',
        choice: 'granted',
        at: expect.stringMatching(/^\d{4}-.*Z$/),
        allowed: true,
        reason: 'granted',
        proof: { seq, hash },
      }),
      expect.objectContaining({ purpose: PURPOSE, choice: null, at: null, reason: 'never-asked' }),
      expect.objectContaining({
        purpose: 'orders',
        choice: 'withdrawn',
        allowed: false,
        reason: 'withdrawn',
      }),
    ]);
  });

  it('never contradicts itself while the person changes their mind', async () => {
    const toggles = Array.from({ length: 60 }, (_, i): Action => (i % 2 === 0 ? 'grant' : 'withdraw'));
    let isWriting = true;
    const write = async () => {
      for (const action of toggles) await api.write(action, { principalId: 'gabi', purposes: ['ads'] });
      isWriting = false;
    };
    const read = async () => {
      const contradictions: object[] = [];
      while (isWriting) {
        const { purposes } = (await api.post('/v1/consent/state', { principalId: 'gabi' })).json() as {
          purposes: { purpose: string; choice: string | null; allowed: boolean; reason: string }[];
        };
        const ads = purposes.find(({ purpose }) => purpose === 'ads');
        if (ads && (ads.choice ?? 'never-asked') !== ads.reason) contradictions.push(ads);
      }
      return contradictions;
    };
    const [, ...readers] = await Promise.all([write(), read(), read(), read()]);
    expect(readers.flat()).toEqual([]);
  });

  it('agrees with the checks, under GPC too', async () => {
    await api.write('grant', { principalId: 'fritz', purposes: ['ads', 'orders'], gpc: true });
    const reply = await api.post('/v1/consent/state', { principalId: 'fritz' });
    const { purposes } = reply.json() as { purposes: { purpose: string; reason: string }[] };
    for (const { purpose, reason } of purposes) {
      expect(reason).toBe((await api.check('fritz', purpose)).reason);
    }
    expect(purposes.map(({ reason }) => reason)).toEqual(['gpc-opt-out', 'gpc-opt-out', 'granted']);
  });
});

const CHECK = '/v1/consent/can-process';
const BATCH = `${CHECK}/batch`;

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
