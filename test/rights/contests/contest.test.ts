import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { REASON } from '../../support/constants.ts';
import { expectError, SEEN_WITHIN } from '../../support/expect.ts';
import { apiKey, type Rights, startRights, type Visit } from '../support/rights.ts';

let rights: Rights;
let secret: string;
beforeAll(async () => {
  rights = await startRights();
  secret = await apiKey(rights, 'secret');
});
afterAll(() => rights.stop());

interface Record_ {
  readonly contestId: string;
  readonly status: string;
  readonly outcome: string | null;
  readonly filedAt: string;
  readonly dueAt: string;
  readonly version: number;
  readonly resolvedBy: { readonly role: string; readonly ref: string } | null;
  readonly [more: string]: unknown;
}

const subjectOf = (visit: Visit, sub = 'anna'): Promise<string> =>
  rights.as({ gpd_role: 'subject', sub, gpd_visitor: visit.visitorId });
const reviewer = (sub = 'rita'): Promise<string> => rights.as({ gpd_role: 'reviewer', sub });

async function file(visit: Visit, fields: object = {}, sub?: string): Promise<Record_> {
  const body = { requestId: visit.requestId, ...fields };
  const reply = await rights.call('/privacy/contest', body, await subjectOf(visit, sub));
  expect({ status: reply.status, text: reply.text }).toMatchObject({ status: 202 });
  return reply.json() as Record_;
}

const resolve = async (contestId: string, outcome: string, token?: string, fields: object = {}) =>
  rights.call(
    '/privacy/contest/resolve',
    { contestId, outcome, reason: REASON, ...fields },
    token ?? (await reviewer()),
  );

describe('a contest', () => {
  it('is filed, due a calendar month later, and restricts the decision while it is open', async () => {
    const visit = await rights.visit({ bot: true });
    const contest = await file(visit, { statement: 'I am a person.\nReally: <b>me</b>' });
    expect(contest).toMatchObject({
      requestId: visit.requestId,
      status: 'open',
      outcome: null,
      statement: 'I am a person.\nReally: <b>me</b>',
      restricted: true,
      resolvedAt: null,
      resolvedBy: null,
    });
    const filed = new Date(contest.filedAt);
    expect(new Date(contest.dueAt).getUTCMonth()).toBe((filed.getUTCMonth() + 1) % 12);
    expect((await rights.decision(visit.requestId, secret)).json()).toMatchObject({ restricted: true });
    expect(contest).not.toHaveProperty('durable');
  });

  it('is one a decision: filing again answers the first, at the same moment too', async () => {
    const visit = await rights.visit();
    const token = await subjectOf(visit);
    const replies = await Promise.all(
      [1, 2, 3, 4].map((i) =>
        rights.call('/privacy/contest', { requestId: visit.requestId, statement: `no. ${i}` }, token),
      ),
    );
    expect(new Set(replies.map((reply) => reply.status))).toEqual(new Set([202]));
    expect(new Set(replies.map((reply) => reply.text)).size).toBe(1);
  });

  it('upheld: the decision stands and is no longer restricted', async () => {
    const visit = await rights.visit({ bot: true });
    const { contestId } = await file(visit);
    const reply = await resolve(contestId, 'upheld');
    expect(reply.status).toBe(200);
    expect(reply.json()).toMatchObject({
      status: 'resolved',
      outcome: 'upheld',
      reason: REASON,
      restricted: false,
    });
    const decision = (await rights.decision(visit.requestId, secret)).json();
    expect(decision).toMatchObject({ restricted: false, class: 'undeclared_automation' });
  });

  it('overturned: the person is never a bot again, here and at every later visit', async () => {
    const device = 'a'.repeat(32);
    const visit = await rights.visit({ bot: true, device });
    expect(visit.answer.class).toBe('undeclared_automation');
    const { contestId } = await file(visit);
    const reply = await resolve(contestId, 'overturned');
    const resolvedBy = (reply.json() as Record_).resolvedBy;
    expect(resolvedBy?.role).toBe('reviewer');
    expect(resolvedBy?.ref).not.toContain('rita');
    const calm = { class: 'human', smartSignals: { bot: false } };
    expect((await rights.decision(visit.requestId, secret)).json()).toMatchObject(calm);
    const later = await rights.visit({ bot: true, device });
    expect(later.answer).toMatchObject(calm);
    expect(later.answer.suspectScore).toBeLessThanOrEqual(0.2);
    const subject = await rights.as({ gpd_role: 'subject', gpd_visitor: visit.visitorId });
    const dsar = (await rights.call('/privacy/dsar', {}, subject)).json() as {
      decisions: readonly { readonly requestId: string }[];
    };
    // No rule made a person of them, so none is named.
    expect(dsar.decisions.find(({ requestId }) => requestId === later.requestId)).toMatchObject({
      overridden: true,
      whatWouldHaveChanged: {
        text: 'A review decided. The rules alone would have said “an automated visit”.',
        decisive: [],
        withoutAll: null,
      },
    });
    const another = await rights.visit({ bot: true, device: 'b'.repeat(32) });
    expect(another.answer.class).toBe('undeclared_automation');
  });

  it('is resolved once: the same outcome again changes nothing, another is 409', async () => {
    const visit = await rights.visit();
    const { contestId } = await file(visit);
    const first = await resolve(contestId, 'upheld');
    const again = await resolve(contestId, 'upheld', await reviewer('ruth'), { reason: `${REASON} Again.` });
    expect(again.status).toBe(200);
    expect(again.text).toBe(first.text);
    expectError(await resolve(contestId, 'overturned'), 'already-resolved');
    expect((await file(visit)).status).toBe('resolved');
  });

  it('is decided by one of two people who decide differently at once', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { contestId } = await file(await rights.visit());
      const replies = await Promise.all([
        resolve(contestId, 'upheld', await reviewer('rita')),
        resolve(contestId, 'overturned', await reviewer('ruth')),
      ]);
      expect(new Set(replies.map((reply) => reply.status))).toEqual(new Set([200, 409]));
    }
  });

  it('is resolved by nobody who filed it', async () => {
    const visit = await rights.visit();
    const { contestId } = await file(visit, {}, 'both');
    const token = await rights.as({
      gpd_role: ['subject', 'reviewer'],
      sub: 'both',
      gpd_visitor: visit.visitorId,
    });
    expectError(await resolve(contestId, 'overturned', token), 'self-review-denied');
    expect((await resolve(contestId, 'overturned')).status).toBe(200);
    expectError(await resolve(contestId, 'overturned', token), 'self-review-denied');
  });

  it('refuses a version that is not the one', async () => {
    const { contestId, version } = await file(await rights.visit());
    expectError(await resolve(contestId, 'upheld', undefined, { version: version + 1 }), 'stale-version');
    expect((await resolve(contestId, 'upheld', undefined, { version })).status).toBe(200);
  });

  it('needs two people where the tenant wants four eyes', async () => {
    await rights.gpd.json(['tenants', 'set', 'acme', 'review.fourEyes=true']);
    await vi.waitFor(async () => {
      const { contestId } = await file(await rights.visit());
      expect((await resolve(contestId, 'upheld')).json()).toMatchObject({ status: 'open' });
    }, SEEN_WITHIN);
    const visit = await rights.visit({ bot: true });
    const { contestId } = await file(visit);
    const proposed = (await resolve(contestId, 'overturned')).json() as Record_;
    expect(proposed).toMatchObject({ status: 'open', outcome: null, proposed: { outcome: 'overturned' } });
    expect(((await resolve(contestId, 'overturned')).json() as Record_).status).toBe('open');
    const confirmed = (await resolve(contestId, 'overturned', await reviewer('ruth'))).json();
    expect(confirmed).toMatchObject({ status: 'resolved', outcome: 'overturned', proposed: null });
    await rights.gpd.json(['tenants', 'set', 'acme', 'review.fourEyes=false']);
  });
});

describe('a hostile body', () => {
  let visit: Visit;
  let token: string;
  beforeAll(async () => {
    visit = await rights.visit();
    token = await subjectOf(visit);
  });

  it.each([
    ['4,001 characters', 'x'.repeat(4001)],
    ['4,001 emoji', '🦊'.repeat(4001)],
    ['NUL', 'a\0b'],
    ['a bell', 'a\x07b'],
    ['an escape', 'a\x1b[31mb'],
    ['a C1 control', 'a\x85b'],
    ['no text', 7],
    ['null', null],
    ['a list', ['x']],
  ])('a statement of %s is refused', async (_what, statement) => {
    expectError(
      await rights.call('/privacy/contest', { requestId: visit.requestId, statement }, token),
      'invalid-request',
    );
  });

  it('a lone surrogate is refused', async () => {
    const body = `{"requestId":"${visit.requestId}","statement":"a\\ud800b"}`;
    expectError(await rights.call('/privacy/contest', body, token), 'invalid-request');
  });

  it('4,000 emoji with line breaks are a statement', async () => {
    const statement = `${'🦊'.repeat(3998)}\n\t`;
    expect((await file(await rights.visit({ bot: true }), { statement }))['statement']).toBe(statement);
  });

  it.each([
    ['19 characters', 'x'.repeat(19)],
    ['20 spaces', ' '.repeat(20)],
    ['4,001 characters', 'x'.repeat(4001)],
    ['control characters', `${REASON}\x00`],
    ['nothing', undefined],
  ])('a reason of %s is refused', async (_what, reason) => {
    const { contestId } = await file(visit);
    expectError(await resolve(contestId, 'upheld', undefined, { reason }), 'invalid-request');
  });

  it('an outcome of its own is refused', async () => {
    const { contestId } = await file(visit);
    expectError(await resolve(contestId, 'maybe'), 'invalid-request');
    expectError(await resolve(contestId, '__proto__'), 'invalid-request');
  });
});
