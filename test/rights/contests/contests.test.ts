import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { DAY } from '../../../src/lib/clock.ts';
import { caseFiledSchema, caseResponseSchema } from '../../../src/schema/rights.ts';
import { KID, OTHER, OTHER_ORIGIN, REASON } from '../../support/constants.ts';
import { expectError, SEEN_WITHIN } from '../../support/expect.ts';
import { started } from '../../support/started.ts';
import { apiKey, type Claims, type MeChange, startRights, type Visit } from '../support/rights.ts';

/** Contests over HTTP, with an account and by a case key. The other tenant has four eyes and the law of California. */

interface Filed {
  readonly contestId: string;
  readonly status: string;
  readonly filedAt: string;
  readonly dueAt: string;
  readonly version: number;
  readonly [more: string]: unknown;
}

const STATEMENT = 'I am a person, and my browser is driven by a screen reader.';
const THERE = { gpd_tenant: OTHER };

const rights = started(() => startRights({ settings: { GPD_TRUSTED_PROXIES: '127.0.0.1' } }));
let secret: string;
beforeAll(async () => {
  secret = await apiKey(rights, 'secret');
  await rights.gpd.json(['tenants', 'set', OTHER, 'rights.profile=ccpa', 'review.fourEyes=true']);
  await vi.waitFor(async () => {
    const { filedAt, dueAt } = await file(await visitOther(), {}, THERE);
    expect(Date.parse(dueAt) - Date.parse(filedAt)).toBe(45 * DAY);
  }, SEEN_WITHIN);
});

const visitBot = (device?: string) => rights.visit({ bot: true, ...(device && { device }) });
const visitOther = () => rights.visit({ bot: true, target: rights.other, origin: OTHER_ORIGIN });
const subjectOf = (visit: Visit, claims: Claims = {}): Promise<string> =>
  rights.as({ gpd_role: 'subject', sub: 'anna', gpd_visitor: visit.visitorId, ...claims });
const reviewer = (claims: Claims = {}): Promise<string> =>
  rights.as({ gpd_role: 'reviewer', sub: 'rita', ...claims });
/** Staff at the command line. */
const staff = (...words: string[]) => rights.gpd.cli(['contests', ...words, '--json']);
const ask = (contestId: string, question: string) => staff('ask', contestId, '--question', question);

async function file(visit: Visit, fields: object = {}, claims: Claims = {}): Promise<Filed> {
  const body = { requestId: visit.requestId, ...fields };
  const reply = await rights.call('/privacy/contest', body, await subjectOf(visit, claims));
  expect({ status: reply.status, text: reply.text }).toMatchObject({ status: 202 });
  return reply.json() as Filed;
}

async function resolve(contestId: string, outcome: string, fields: object = {}, claims: Claims = {}) {
  const body = { contestId, outcome, reason: REASON, ...fields };
  return rights.call('/privacy/contest/resolve', body, await reviewer(claims));
}

let networks = 0;
/** From a network of its own. */
function contest(visit: Visit, { body, ...change }: MeChange = {}) {
  networks += 1;
  const headers = { 'x-forwarded-for': `10.1.${networks}.1` };
  return rights.me(visit, 'contest', { headers, body: { statement: STATEMENT, ...body }, ...change });
}

async function fileCase(visit: Visit, change: MeChange = {}) {
  const reply = await contest(visit, change);
  expect(reply.status).toBe(202);
  return caseFiledSchema.strict().parse(reply.json()) as { caseKey: string; contestId: string };
}

const view = (caseKey: unknown) => rights.call('/case', { caseKey });
const answer = (caseKey: unknown, text: unknown) => rights.call('/case/answer', { caseKey, answer: text });

describe('a contest', () => {
  it('is filed, due a calendar month later, and restricts the decision until it is upheld', async () => {
    const visit = await visitBot();
    const statement = `${'🦊'.repeat(3998)}\n\t`;
    const filed = await file(visit, { statement });
    expect(filed).toMatchObject({ requestId: visit.requestId, status: 'open', outcome: null, statement });
    expect(filed).toMatchObject({ restricted: true, resolvedAt: null, resolvedBy: null });
    const month = new Date(filed.filedAt).getUTCMonth();
    expect(new Date(filed.dueAt).getUTCMonth()).toBe((month + 1) % 12);
    expect(filed).not.toHaveProperty('durable');
    const decision = async () => (await rights.decision(visit.requestId, secret)).json();
    const contestUrl = `${rights.gpd.url}/my-data?kid=${KID}#contest`;
    expect(await decision()).toMatchObject({ restricted: true, contestUrl });
    const reply = await resolve(filed.contestId, 'upheld');
    expect(reply.status).toBe(200);
    expect(reply.json()).toMatchObject({ status: 'resolved', outcome: 'upheld', restricted: false });
    expect(await decision()).toMatchObject({ restricted: false, class: 'undeclared_automation' });
  });

  it('overturned: the person is never a bot again, here and at every later visit', async () => {
    const device = 'a'.repeat(32);
    const visit = await visitBot(device);
    expect(visit.answer.class).toBe('undeclared_automation');
    const { contestId } = await file(visit);
    const reply = await resolve(contestId, 'overturned');
    const { resolvedBy } = reply.json() as { resolvedBy: { role: string; ref: string } };
    expect(resolvedBy.role).toBe('reviewer');
    expect(resolvedBy.ref).not.toContain('rita');
    const calm = { class: 'human', smartSignals: { bot: false } };
    expect((await rights.decision(visit.requestId, secret)).json()).toMatchObject(calm);
    const later = await visitBot(device);
    expect(later.answer).toMatchObject(calm);
    expect(later.answer.suspectScore).toBeLessThanOrEqual(0.2);
    const dsar = (await rights.call('/privacy/dsar', {}, await subjectOf(visit))).json() as {
      decisions: readonly { readonly requestId: string }[];
    };
    // No rule made a person of them, so none is named.
    const text =
      'A reviewer decided that this device, or one that looks the same, is a person’s. The rules alone would have said “an automated visit”.';
    expect(dsar.decisions.find(({ requestId }) => requestId === later.requestId)).toMatchObject({
      overridden: true,
      whatWouldHaveChanged: { text, decisive: [], withoutAll: null },
    });
    expect((await visitBot('b'.repeat(32))).answer.class).toBe('undeclared_automation');
  });

  it('is resolved once: the same outcome again changes nothing, another is 409', async () => {
    const visit = await rights.visit();
    const { contestId, version } = await file(visit);
    expectError(await resolve(contestId, 'upheld', { version: version + 1 }), 'stale-version');
    const first = await resolve(contestId, 'upheld', { version });
    const again = await resolve(contestId, 'upheld', { reason: `${REASON} Again.` }, { sub: 'ruth' });
    expect([again.status, again.text]).toEqual([200, first.text]);
    expectError(await resolve(contestId, 'overturned'), 'already-resolved');
    expect((await file(visit)).status).toBe('resolved');
  });

  it('is decided by one of two people who decide differently at once', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { contestId } = await file(await rights.visit());
      const replies = await Promise.all([
        resolve(contestId, 'upheld'),
        resolve(contestId, 'overturned', {}, { sub: 'ruth' }),
      ]);
      expect(new Set(replies.map((reply) => reply.status))).toEqual(new Set([200, 409]));
    }
  });

  it('is resolved by nobody who filed it', async () => {
    const visit = await rights.visit();
    const { contestId } = await file(visit, {}, { sub: 'both' });
    const both = { gpd_role: ['subject', 'reviewer'], sub: 'both', gpd_visitor: visit.visitorId };
    expectError(await resolve(contestId, 'overturned', {}, both), 'self-review-denied');
    expect((await resolve(contestId, 'overturned')).status).toBe(200);
    expectError(await resolve(contestId, 'overturned', {}, both), 'self-review-denied');
  });

  it('is answered by its own account', async () => {
    const visit = await visitBot();
    const { contestId, ...record } = await file(visit);
    expect(record).not.toHaveProperty('answer');
    const anna = await subjectOf(visit);
    const by = async (token: string | Claims, body: object = {}) => {
      const bearer = typeof token === 'string' ? token : await rights.as(token);
      return rights.call('/privacy/contest/answer', { contestId, answer: 'Firefox.', ...body }, bearer);
    };
    expectError(await by(anna), 'case-closed');
    await ask(contestId, 'Which browser do you use?');
    const claims = { gpd_role: 'subject', gpd_visitor: visit.visitorId };
    expectError(await by(''), 'unauthenticated');
    expectError(await by({ gpd_role: 'dpo', sub: 'dora' }), 'subject-only');
    expectError(await by({ gpd_role: 'subject', sub: 'bob' }), 'subject-not-identified');
    expectError(await by({ ...claims, sub: 'mallory' }), 'not-your-decision');
    expectError(await by({ ...claims, sub: 'anna', ...THERE }), 'no-such-contest');
    expectError(await by(anna, { contestId: 'con_0' }), 'no-such-contest');
    expectError(await by(anna, { answer: '' }), 'invalid-request');
    const answered = await by(anna);
    expect(answered.status).toBe(200);
    expect(answered.json()).toMatchObject({ contestId, answer: 'Firefox.', status: 'open' });
    expectError(await by(anna), 'case-closed');
    const dsar = (await rights.call('/privacy/dsar', {}, anna)).json() as { contests: object[] };
    expect(dsar.contests).toMatchObject([{ answer: 'Firefox.', email: null, earlier: [] }]);
  });
});

describe('a hostile text', () => {
  it.each([
    ['4,001 emoji', `"${'🦊'.repeat(4001)}"`],
    ['NUL', '"a\\u0000b"'],
    ['a C1 control', '"a\\u0085b"'],
    ['a lone surrogate', '"a\\ud800b"'],
    ['a number', '7'],
    ['null', 'null'],
  ])('a statement of %s is refused', async (_what, statement) => {
    const visit = await rights.visit();
    const body = `{"requestId":"${visit.requestId}","statement":${statement}}`;
    expectError(await rights.call('/privacy/contest', body, await subjectOf(visit)), 'invalid-request');
  });

  it.each([
    ['a reason of 19 characters', { reason: 'x'.repeat(19) }],
    ['a reason of 20 spaces', { reason: ' '.repeat(20) }],
    ['a reason of 4,001 characters', { reason: 'x'.repeat(4001) }],
    ['a reason with control characters', { reason: `${REASON}\x00` }],
    ['no reason', { reason: undefined }],
    ['an outcome of its own', { outcome: 'maybe' }],
    ['a prototype for an outcome', { outcome: '__proto__' }],
  ])('%s is refused', async (_what, fields) => {
    const { contestId } = await file(await rights.visit());
    expectError(await resolve(contestId, 'upheld', fields), 'invalid-request');
  });

  it.each([
    ['no statement', { statement: undefined }],
    ['white space', { statement: ' \n ' }],
    ['an address that is none', { email: 'anna' }],
    ['two addresses', { email: 'a@example.org, b@example.org' }],
    ['a line break in the address', { email: 'a@example.org\r\nBcc: b@example.org' }],
    ['an address that is too long', { email: `${'a'.repeat(250)}@example.org` }],
  ])('a case is refused with %s', async (_what, body) => {
    const visit = await visitBot();
    expectError(await contest(visit, { body }), 'invalid-request');
    expect(await rights.sql(`SELECT 1 FROM contests WHERE request_id = '${visit.requestId}'`)).toEqual([]);
  });
});

describe('filing a case', () => {
  it('answers a case key once; a second contest of the request answers the first', async () => {
    const visit = await visitBot();
    const { caseKey, ...first } = await fileCase(visit, { body: { statement: 'ä' } });
    expect(caseKey).toMatch(/^([0-9A-HJKMNP-TV-Z]{5}-){5}[0-9A-HJKMNP-TV-Z]$/);
    const again = await contest(visit, { body: { statement: 'other words' } });
    expect({ status: again.status, body: again.json() }).toEqual({ status: 202, body: first });
    expect(first).toMatchObject({ requestId: visit.requestId, status: 'open' });
  });

  it('is refused without the token of the visit, and 404 after its decision was erased', async () => {
    const visit = await visitBot();
    expectError(await contest(visit, { token: 'forged' }), 'unauthenticated');
    await rights.me(visit, 'forget');
    expectError(await contest(visit), 'no-such-decision');
  });

  it('is refused for the fourth open case of a day and network', async () => {
    await rights.gpd.json(['tenants', 'set', KID, 'notice.contact=privacy@shop.example']);
    const from = async (client: string) =>
      contest(await visitBot(), { headers: { 'x-forwarded-for': client } });
    for (let i = 0; i < 3; i += 1) expect((await from('192.0.2.7')).status).toBe(202);
    const near = await from('192.0.2.99');
    const { message, details } = expectError(near, 'too-many-cases');
    expect(JSON.stringify([message, details])).not.toContain('Retry-After');
    // Whoever is refused has another way, with an address and a number that names the decision.
    expect(String(message)).toContain('that counts as your objection');
    expect(String(details)).toMatch(/^Write to privacy@shop\.example, and give the number req_\w+\.$/);
    expect(Number(near.headers['retry-after'])).toBeGreaterThan(0);
    expect(Number(near.headers['retry-after'])).toBeLessThanOrEqual(86_400);
  });
});

describe('a case', () => {
  it('is readable with its key: questions, answers and, under four eyes, both reasons', async () => {
    const visit = await visitOther();
    const change = { origin: OTHER_ORIGIN, body: { email: 'anna@example.org' } };
    const { caseKey, contestId } = await fileCase(visit, change);
    const first = caseResponseSchema.strict().parse((await view(caseKey)).json());
    const untold = { extendedTo: null, extensionReason: null, question: null, answer: null, outcome: null };
    expect(first).toMatchObject({ contestId, status: 'open', statement: STATEMENT, ...untold, reasons: [] });
    expect(first.decision).toMatchObject({ class: 'undeclared_automation', decidedAt: expect.any(String) });
    expect(first.decision.rules[0]).toEqual({ id: expect.any(String), text: expect.any(String) });
    expectError(await answer(caseKey, 'unasked'), 'case-closed');
    await ask(contestId, 'Which screen reader do you use?');
    expect((await answer(caseKey.toLowerCase(), 'NVDA')).json()).toMatchObject({ answer: 'NVDA' });
    expectError(await answer(caseKey, 'NVDA'), 'case-closed');
    await ask(contestId, 'Which version?');
    expect((await view(caseKey)).json()).toMatchObject({ question: 'Which version?', answer: null });
    expect((await answer(caseKey, '2026.1')).json()).toMatchObject({ answer: '2026.1' });

    const extend = (days: string) =>
      staff('extend', contestId, '--reason', 'Its maker was asked.', '--days', days);
    expect((await extend('46')).code).toBe(2);
    expect((await extend('45')).code).toBe(0);
    const extended = caseResponseSchema.parse((await view(caseKey)).json());
    expect(extended).toMatchObject({ dueAt: first.dueAt, extensionReason: 'Its maker was asked.' });
    expect(Date.parse(extended.extendedTo ?? '') - Date.parse(first.filedAt)).toBe(90 * DAY);

    const found = 'The first reviewer found a screen reader.';
    const second = 'The second reviewer agrees with the first.';
    const rule = async (reason: string, claims: Claims = {}) =>
      (await resolve(contestId, 'overturned', { reason }, { ...THERE, ...claims })).json();
    const proposed = { outcome: 'overturned' };
    // A second ruling of the same person is a proposal still.
    for (const reason of ['I have not looked at it for long.', found])
      expect(await rule(reason)).toMatchObject({ status: 'open', outcome: null, proposed });
    expect((await view(caseKey)).json()).toMatchObject({ outcome: null, reasons: [] });
    expect(await rule(second, { sub: 'ruth' })).toMatchObject({
      status: 'resolved',
      outcome: 'overturned',
      proposed: null,
    });
    expect((await view(caseKey)).json()).toMatchObject({ outcome: 'overturned', reasons: [found, second] });
    expectError(await answer(caseKey, 'late'), 'case-closed');
    const dsar = await rights.call('/privacy/dsar', {}, await subjectOf(visit, THERE));
    const earlier = [{ question: 'Which screen reader do you use?', answer: 'NVDA' }];
    expect(dsar.json()).toMatchObject({ contests: [{ email: 'anna@example.org', earlier }] });
  });

  it('is readable with no other key, and every refusal is the same', async () => {
    const { caseKey } = await fileCase(await visitBot());
    const [altered, unknown] = [`${caseKey}0`, '7ZZZZ-ZZZZZ-ZZZZZ-ZZZZZ-ZZZZZ-Z'];
    const unknownKeys = ['', 'x', altered, caseKey.slice(1), unknown, 'a'.repeat(20_000)];
    const replies = [
      ...(await Promise.all(unknownKeys.map(view))),
      ...(await Promise.all(unknownKeys.map((key) => answer(key, 'a')))),
    ];
    for (const reply of replies) expectError(reply, 'no-such-case');
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
    for (const body of [{}, { caseKey: 7 }, { caseKey, more: 1 }, []])
      expectError(await rights.call('/case', body), 'invalid-request');
    for (const text of [undefined, ' ', 7, 'a'.repeat(4001)])
      expectError(await answer(caseKey, text), 'invalid-request');
  });

  it('opens for its own key alone, wherever a writer of the database moves its hash', async () => {
    const [mine, theirs] = [await fileCase(await visitBot()), await fileCase(await visitBot())];
    const hashOf = `(SELECT case_hash FROM contests WHERE contest_id = '${mine.contestId}')`;
    await rights.sql(
      `CREATE TEMP TABLE moved AS SELECT ${hashOf} AS hash`,
      `UPDATE contests SET case_hash = NULL WHERE contest_id = '${mine.contestId}'`,
      `UPDATE contests SET case_hash = (SELECT hash FROM moved) WHERE contest_id = '${theirs.contestId}'`,
    );
    expectError(await view(mine.caseKey), 'no-such-case');
    expectError(await answer(mine.caseKey, 'a'), 'no-such-case');
  });

  it('leaves no byte of its texts, its address and its key when it is erased', async () => {
    const visit = await visitBot();
    const { caseKey } = await fileCase(visit, { body: { email: 'left.bytes@example.org' } });
    const stored = `SELECT case_hash, sealed FROM contests WHERE request_id = '${visit.requestId}'`;
    const [row] = await rights.sql(stored);
    const storedValues = [String(row?.['case_hash']), String(row?.['sealed']).slice(0, 48)];
    const found = (texts: readonly string[]): string[] => {
      const files = ['gpd.db', 'gpd.db-wal'].map((name) => readFileSync(join(rights.gpd.dataDir, name)));
      return texts.filter((text) => files.some((file) => file.includes(text)));
    };
    // The negative control.
    expect(found(storedValues)).toEqual(storedValues);
    const token = await rights.as({ gpd_role: 'dpo', sub: 'dora' });
    const receipt = await rights.call('/privacy/erase', { requestId: visit.requestId }, token);
    expect(receipt.json()).toMatchObject({ incomplete: false });
    const plain = [caseKey, caseKey.replaceAll('-', ''), STATEMENT, 'left.bytes@example.org'];
    expect(found([...storedValues, ...plain])).toEqual([]);
    expectError(await view(caseKey), 'no-such-case');
  });
});
