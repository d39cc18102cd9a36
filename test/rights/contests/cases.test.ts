import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../../src/lib/clock.ts';
import { contestTextsOf } from '../../../src/rights/contests/contest.ts';
import { createContestService } from '../../../src/rights/contests/service.ts';
import { caseFiledSchema, caseResponseSchema } from '../../../src/schema/rights.ts';
import { KID, OTHER_ORIGIN } from '../../support/constants.ts';
import { expectError } from '../../support/expect.ts';
import { open } from '../support/eraser.ts';
import { apiKey, type MeChange, type Rights, startRights, type Visit } from '../support/rights.ts';

/** Contests without an account, over HTTP. */

let rights: Rights;
let reviewer: ReturnType<typeof createContestService>;
let store: Awaited<ReturnType<typeof open>>;
beforeAll(async () => {
  rights = await startRights({ settings: { GPD_TRUSTED_PROXIES: '127.0.0.1' } });
  store = await open(rights.gpd.dataDir);
  const { database } = store;
  // Under four eyes.
  const tenantOf = (kid: string) => {
    const tenant = store.tenantOf(kid);
    return tenant && { ...tenant, settings: { ...tenant.settings, 'review.fourEyes': true } };
  };
  const deps = {
    database,
    tenantOf,
    clock: Date.now,
    random: randomBytes,
    contestTexts: contestTextsOf(tenantOf),
  };
  reviewer = createContestService(deps);
});
afterAll(async () => {
  await store.database.close();
  await rights.stop();
});

const STATEMENT = 'I am a person, and my browser is driven by a screen reader.';
const RITA = { kid: KID, role: 'reviewer', ref: 'rita' } as const;

let networks = 0;
/** From a network of its own. */
function contest(visit: Visit, { body, ...change }: MeChange = {}) {
  networks += 1;
  const headers = { 'x-forwarded-for': `10.1.${networks}.1` };
  return rights.me(visit, 'contest', { headers, body: { statement: STATEMENT, ...body }, ...change });
}

async function filed(visit: Visit, body: object = {}) {
  const reply = await contest(visit, { body });
  expect(reply.status).toBe(202);
  return caseFiledSchema.strict().parse(reply.json()) as {
    readonly caseKey: string;
    readonly contestId: string;
  };
}

const view = (caseKey: unknown) => rights.call('/case', { caseKey });
const answer = (caseKey: unknown, text: unknown) => rights.call('/case/answer', { caseKey, answer: text });

describe('filing', () => {
  it('answers a case key once; a second contest of the request answers the first', async () => {
    const visit = await rights.visit({ bot: true });
    const { caseKey, ...first } = await filed(visit);
    expect(caseKey).toMatch(/^([0-9A-HJKMNP-TV-Z]{5}-){5}[0-9A-HJKMNP-TV-Z]$/);
    const again = await contest(visit, { body: { statement: 'other words' } });
    expect({ status: again.status, body: again.json() }).toEqual({ status: 202, body: first });
    expect(first).toMatchObject({ requestId: visit.requestId, status: 'open' });
  });

  it.each([
    ['no statement', { statement: undefined }],
    ['an empty statement', { statement: '' }],
    ['white space', { statement: ' \n ' }],
    ['4,001 characters', { statement: 'ä'.repeat(4001) }],
    ['a control character', { statement: 'a\u0000b' }],
    ['a number', { statement: 5 }],
    ['an address that is none', { email: 'anna' }],
    ['two addresses', { email: 'a@example.org, b@example.org' }],
    ['a line break in the address', { email: 'a@example.org\r\nBcc: b@example.org' }],
    ['an address that is too long', { email: `${'a'.repeat(250)}@example.org` }],
  ])('is refused with %s', async (_what, body) => {
    const visit = await rights.visit({ bot: true });
    expectError(await contest(visit, { body }), 'invalid-request');
    expect(await rights.sql(`SELECT 1 FROM contests WHERE request_id = '${visit.requestId}'`)).toEqual([]);
  });

  it('takes one character, and 4,000', async () => {
    for (const statement of ['ä', 'ä'.repeat(4000)])
      expect((await contest(await rights.visit({ bot: true }), { body: { statement } })).status).toBe(202);
  });

  it('is refused under another’s cookie, origin or token, as every use of the token is', async () => {
    const visit = await rights.visit({ bot: true });
    const other = await rights.visit({ bot: true });
    for (const change of [
      { token: 'forged' },
      { token: null },
      { session: other.session },
      { session: null },
      { origin: OTHER_ORIGIN },
      { origin: null },
    ])
      expectError(await contest(visit, change), 'unauthenticated');
  });

  it('against an erased decision is 404', async () => {
    const visit = await rights.visit({ bot: true });
    await rights.me(visit, 'forget');
    expectError(await contest(visit), 'no-such-decision');
  });

  it('is refused for the fourth open case of a day and network', async () => {
    const headers = { 'x-forwarded-for': '192.0.2.7' };
    for (let i = 0; i < 3; i += 1)
      expect((await contest(await rights.visit({ bot: true }), { headers })).status).toBe(202);
    const near = await contest(await rights.visit({ bot: true }), {
      headers: { 'x-forwarded-for': '192.0.2.99' },
    });
    expectError(near, 'too-many-cases');
    expect(Number(near.headers['retry-after'])).toBeGreaterThan(0);
    expect(Number(near.headers['retry-after'])).toBeLessThanOrEqual(86_400);
  });
});

describe('a case', () => {
  it('is readable with its key: question, answer and, under four eyes, both reasons', async () => {
    const visit = await rights.visit({ bot: true });
    const { caseKey, contestId } = await filed(visit, { email: 'anna@example.org' });
    const first = caseResponseSchema.strict().parse((await view(caseKey)).json());
    expect(first).toMatchObject({
      contestId,
      status: 'open',
      extendedTo: null,
      extensionReason: null,
      statement: STATEMENT,
      question: null,
      askedAt: null,
      answer: null,
      outcome: null,
      reasons: [],
      resolvedAt: null,
      decision: { class: 'undeclared_automation', decidedAt: expect.any(String) },
    });
    expect(first.decision.rules[0]).toEqual({ id: expect.any(String), text: expect.any(String) });
    expectError(await answer(caseKey, 'unasked'), 'case-closed');
    await reviewer.ask(RITA, contestId, 'Which screen reader do you use?');
    expect((await answer(caseKey.toLowerCase(), 'NVDA')).json()).toMatchObject({ answer: 'NVDA' });
    expectError(await answer(caseKey, 'NVDA'), 'case-closed');
    const extension = { days: 20, reason: 'The maker of the tool was asked.' };
    const { dueAt, extendedFrom } = await reviewer.extend(RITA, contestId, extension);
    expect((await view(caseKey)).json()).toMatchObject({
      dueAt: new Date(extendedFrom ?? 0).toISOString(),
      extendedTo: new Date(dueAt).toISOString(),
      extensionReason: extension.reason,
    });
    const ruling = { contestId, outcome: 'overturned', version: null } as const;
    const found = 'The first reviewer found a screen reader.';
    const second = 'The second reviewer agrees with the first.';
    expect(await reviewer.resolve(RITA, { ...ruling, reason: found })).toMatchObject({ status: 'open' });
    expect((await view(caseKey)).json()).toMatchObject({ outcome: null, reasons: [] });
    await reviewer.resolve({ ...RITA, ref: 'remy' }, { ...ruling, reason: second });
    expect((await view(caseKey)).json()).toMatchObject({
      status: 'resolved',
      outcome: 'overturned',
      reasons: [found, second],
    });
    expectError(await answer(caseKey, 'late'), 'case-closed');
  });

  it('is readable with no other key, and every refusal is the same', async () => {
    const { caseKey } = await filed(await rights.visit({ bot: true }));
    const unknownKeys = [
      '',
      'x',
      `${caseKey}0`,
      caseKey.slice(1),
      '7ZZZZ-ZZZZZ-ZZZZZ-ZZZZZ-ZZZZZ-Z',
      'a'.repeat(20_000),
    ];
    const replies = [
      ...(await Promise.all(unknownKeys.map(view))),
      ...(await Promise.all(unknownKeys.map((key) => answer(key, 'a')))),
    ];
    for (const reply of replies) expectError(reply, 'no-such-case');
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
    for (const body of [{}, { caseKey: 7 }, { caseKey, more: 1 }, []])
      expectError(await rights.call('/case', body), 'invalid-request');
    for (const text of [undefined, '', ' ', 7, 'a'.repeat(4001)])
      expectError(await answer(caseKey, text), 'invalid-request');
  });

  it('leaves no byte of its texts, its address and its key when it is erased', async () => {
    const visit = await rights.visit({ bot: true });
    const { caseKey } = await filed(visit, { email: 'left.bytes@example.org' });
    const row = (
      await rights.sql(`SELECT case_hash, sealed FROM contests WHERE request_id = '${visit.requestId}'`)
    )[0];
    const storedValues = [String(row?.['case_hash']), String(row?.['sealed']).slice(0, 48)];
    const bytes = (): Buffer[] =>
      ['gpd.db', 'gpd.db-wal'].map((name) => readFileSync(join(rights.gpd.dataDir, name)));
    const found = (texts: readonly string[]): string[] =>
      texts.filter((text) => bytes().some((file) => file.includes(text)));
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

it('an account answers the question of its own contest', async () => {
  const visit = await rights.visit({ bot: true });
  const who = { gpd_role: 'subject', gpd_visitor: visit.visitorId };
  const anna = await rights.as({ ...who, sub: 'anna' });
  const filing = await rights.call('/privacy/contest', { requestId: visit.requestId }, anna);
  const record = filing.json() as { contestId: string };
  expect(record).not.toHaveProperty('answer');
  const { contestId } = record;
  const by = (token: string, body: object = {}) =>
    rights.call('/privacy/contest/answer', { contestId, answer: 'Firefox.', ...body }, token);
  expectError(await by(anna), 'case-closed');
  await reviewer.ask(RITA, contestId, 'Which browser do you use?');
  expectError(await by(''), 'unauthenticated');
  expectError(await by(await rights.as({ gpd_role: 'dpo', sub: 'dora' })), 'subject-only');
  expectError(await by(await rights.as({ gpd_role: 'subject', sub: 'bob' })), 'subject-not-identified');
  expectError(await by(await rights.as({ ...who, sub: 'mallory' })), 'not-your-decision');
  expectError(await by(await rights.as({ ...who, sub: 'anna', gpd_tenant: 'other' })), 'no-such-contest');
  expectError(await by(anna, { contestId: 'con_0' }), 'no-such-contest');
  expectError(await by(anna, { answer: '' }), 'invalid-request');
  const answered = await by(anna);
  expect({ status: answered.status, body: answered.json() }).toMatchObject({
    status: 200,
    body: { contestId, question: 'Which browser do you use?', answer: 'Firefox.', status: 'open' },
  });
  expectError(await by(anna), 'case-closed');
  const dsar = (await rights.call('/privacy/dsar', {}, anna)).json() as { contests: object[] };
  expect(dsar.contests).toMatchObject([{ answer: 'Firefox.', email: null, earlier: [] }]);
});

it('is due by the law of the tenant', async () => {
  const profile = 'ccpa';
  const tenantOf = (kid: string) => {
    const tenant = store.tenantOf(kid);
    return tenant && { ...tenant, settings: { ...tenant.settings, 'rights.profile': profile } as const };
  };
  const { database } = store;
  const contestTexts = contestTextsOf(tenantOf);
  const service = createContestService({
    database,
    tenantOf,
    clock: Date.now,
    random: randomBytes,
    contestTexts,
  });
  const { requestId } = await rights.visit({ bot: true });
  const nobody = { durable: null, visitorId: null, principal: null, principalId: null };
  const reach = { ...nobody, kid: KID, linked: new Set([requestId]) };
  const { contestId, filedAt, dueAt } = await service.file(reach, { requestId, statement: null }, 'anna');
  expect(dueAt - filedAt).toBe(45 * DAY);
  const longer = (days: number) => service.extend(RITA, contestId, { days, reason: 'More time.' });
  await expect(longer(46)).rejects.toMatchObject({ code: 'invalid-request' });
  expect((await longer(45)).dueAt - filedAt).toBe(90 * DAY);
});

it('a decision names where it can be contested', async () => {
  const visit = await rights.visit({ bot: true });
  const reply = await rights.decision(visit.requestId, await apiKey(rights, 'secret'));
  expect(reply.json()).toMatchObject({ contestUrl: `${rights.gpd.url}/my-data?kid=${KID}#contest` });
});
