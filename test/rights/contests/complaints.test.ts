import { beforeAll, describe, expect, it, vi } from 'vitest';
import { DAY } from '../../../src/lib/clock.ts';
import { caseComplaintResponseSchema, complaintFiledSchema } from '../../../src/schema/rights.ts';
import { KID, ORIGIN, OTHER_ORIGIN, REASON } from '../../support/constants.ts';
import { expectError, SEEN_WITHIN } from '../../support/expect.ts';
import { ask } from '../../support/http.ts';
import { started } from '../../support/started.ts';
import { apiKey, startRights, type Visit } from '../support/rights.ts';

/** Complaints under rights.profile uk, over HTTP and at the command line; the other tenant keeps the GDPR. */

const STATEMENT = 'You kept reading my browser after I had said no.';

const rights = started(() => startRights({ settings: { GPD_TRUSTED_PROXIES: '127.0.0.1' } }));
const staff = (...words: string[]) => rights.gpd.cli(['contests', ...words, '--json']);

let networks = 0;
const headers = () => {
  networks += 1;
  return { 'x-forwarded-for': `10.9.${networks}.1` };
};
const complain = (visit: Visit, body: object = { statement: STATEMENT }) =>
  rights.me(visit, 'complain', { body, headers: headers() });
const visitOther = () => rights.visit({ bot: true, target: rights.other, origin: OTHER_ORIGIN });
const view = async (caseKey: unknown) => (await rights.call('/case', { caseKey })).json();

beforeAll(async () => {
  await rights.gpd.json(['tenants', 'set', KID, 'rights.profile=uk']);
  await vi.waitFor(async () => expect((await complain(await rights.visit())).status).toBe(202), SEEN_WITHIN);
});

async function fileComplaint() {
  const visit = await rights.visit({ bot: true });
  const reply = await complain(visit);
  expect(reply.status).toBe(202);
  const filed = complaintFiledSchema.strict().parse(reply.json());
  return { visit, filed, caseKey: filed.caseKey ?? '' };
}

describe('a complaint', () => {
  it('is received with a key, is acknowledged within 30 days, and has an outcome in words', async () => {
    const { visit, filed, caseKey } = await fileComplaint();
    expect(filed).toMatchObject({ kind: 'complaint', requestId: visit.requestId, status: 'received' });
    expect(Date.parse(filed.acknowledgeBy) - Date.parse(filed.filedAt)).toBe(30 * DAY);
    const received = caseComplaintResponseSchema.strict().parse(await view(caseKey));
    expect(received).toMatchObject({ status: 'received', statement: STATEMENT, outcome: null });

    expect(await staff('acknowledge', filed.contestId)).toMatchObject({ code: 0 });
    const acknowledged = await view(caseKey);
    expect(acknowledged).toMatchObject({ status: 'acknowledged', outcome: null });
    // Once more changes nothing.
    expect(await staff('acknowledge', filed.contestId)).toMatchObject({ code: 0 });
    expect(await view(caseKey)).toEqual(acknowledged);

    expect(await staff('answer', filed.contestId, '--outcome', REASON)).toMatchObject({ code: 0 });
    expect(await view(caseKey)).toMatchObject({ status: 'answered', outcome: REASON });
    expect((await staff('answer', filed.contestId, '--outcome', REASON)).code).not.toBe(0);
  });

  it('a second one of the visit is the first, without its key', async () => {
    const { visit, filed } = await fileComplaint();
    const { caseKey: _, ...first } = filed;
    expect((await complain(visit, { statement: 'again' })).json()).toEqual(first);
  });

  it('needs a statement, and a token before that', async () => {
    const visit = await rights.visit();
    expectError(await complain(visit, {}), 'invalid-request');
    expectError(await complain(visit, { statement: '' }), 'invalid-request');
    expectError(await complain(visit, { statement: STATEMENT, email: 'no address' }), 'invalid-request');
    expectError(await rights.me(visit, 'complain', { token: 'bad' }), 'unauthenticated');
  });

  it('is beside the contest of the same decision, which alone restricts it', async () => {
    const secret = await apiKey(rights, 'secret');
    const { visit, filed } = await fileComplaint();
    expect((await rights.decision(visit.requestId, secret)).json()).toMatchObject({ restricted: false });
    const contested = await rights.me(visit, 'contest', { body: { statement: 'no' }, headers: headers() });
    expect(contested.status).toBe(202);
    const { contestId } = contested.json() as { contestId: string };
    expect(contestId).not.toBe(filed.contestId);
    expect((await rights.decision(visit.requestId, secret)).json()).toMatchObject({ restricted: true });
    expect(
      await staff('resolve', contestId, '--outcome', 'upheld', '--reason', REASON, '--yes'),
    ).toMatchObject({
      code: 0,
    });
    expect((await rights.decision(visit.requestId, secret)).json()).toMatchObject({ restricted: false });
  });

  it('is no contest: it cannot be ruled on or extended, and a contest is not acknowledged', async () => {
    const { visit, filed } = await fileComplaint();
    const ruling = { contestId: filed.contestId, outcome: 'upheld', reason: REASON };
    const token = await rights.as({ gpd_role: 'reviewer', sub: 'rita' });
    expectError(await rights.call('/privacy/contest/resolve', ruling, token), 'no-such-contest');
    expect((await staff('extend', filed.contestId, '--days', '3', '--reason', 'x')).code).not.toBe(0);
    const contested = await rights.me(visit, 'contest', { body: { statement: 'no' }, headers: headers() });
    const { contestId } = contested.json() as { contestId: string };
    expect((await staff('acknowledge', contestId)).code).not.toBe(0);
    expect((await staff('answer', contestId, '--outcome', REASON)).code).not.toBe(0);
  });

  it('can be filed with the key of a contest, and answers a question', async () => {
    const visit = await rights.visit({ bot: true });
    const contested = await rights.me(visit, 'contest', { body: { statement: 'no' }, headers: headers() });
    const { caseKey } = contested.json() as { caseKey: string };
    const reply = await rights.call('/case/complain', { caseKey, statement: STATEMENT }, '', headers());
    expect(reply.status).toBe(202);
    const filed = complaintFiledSchema.strict().parse(reply.json());
    expect(await staff('ask', filed.contestId, '--question', 'When was that, please?')).toMatchObject({
      code: 0,
    });
    const answered = await rights.call('/case/answer', { caseKey: filed.caseKey, answer: 'On Monday.' });
    expect(answered.json()).toMatchObject({ status: 'received', answer: 'On Monday.' });
    // The time to acknowledge a complaint never stands still.
    expect(answered.json()).toMatchObject({ acknowledgeBy: filed.acknowledgeBy });
    expectError(await rights.call('/case/complain', { caseKey: 'x', statement: 'y' }), 'no-such-case');
  });

  it('is in the export, and an erasure of the person deletes it', async () => {
    const { visit, filed, caseKey } = await fileComplaint();
    const exported = (await rights.me(visit, 'export')).json() as {
      complaints: unknown[];
      contests: unknown[];
    };
    expect(exported.complaints).toMatchObject([{ contestId: filed.contestId, statement: STATEMENT }]);
    expect(exported.contests).toEqual([]);
    const dpo = await rights.as({ gpd_role: 'dpo', sub: 'dora' });
    const erased = await rights.call('/privacy/erase', { requestId: visit.requestId }, dpo);
    expect(erased.status).toBe(200);
    expectError(await rights.call('/case', { caseKey }), 'no-such-case');
  });

  it('is in the register and in the list of cases with its kind and state', async () => {
    const { filed } = await fileComplaint();
    await staff('acknowledge', filed.contestId);
    const rows = await rights.gpd.json<{ number: string }[]>(['rights', 'register', KID]);
    expect(rows.find(({ number }) => number === filed.contestId)).toMatchObject({
      kind: 'complaint',
      state: 'acknowledged',
      dueAt: filed.acknowledgeBy,
      acknowledgedAt: expect.stringMatching(/^20/) as string,
    });
    const listed = await rights.gpd.json<{ contestId: string }[]>(['contests', 'list', '--tenant', KID]);
    expect(listed.find(({ contestId }) => contestId === filed.contestId)).toMatchObject({
      kind: 'complaint',
      status: 'acknowledged',
    });
  });

  it('is sent by the form of /my-data, which shows it then', async () => {
    const visit = await rights.visit();
    const submit = async (fields: Record<string, string>, query = '') => {
      const reply = await ask(rights.gpd.url, `/my-data${query}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          cookie: `gp_session=${visit.session}`,
          origin: ORIGIN,
          ...headers(),
        },
        body: new URLSearchParams({ token: visit.token, ...fields }).toString(),
      });
      expect(reply.status).toBe(200);
      return reply.text;
    };
    expect(await submit({ action: 'look' })).toContain('data-testid="send-complaint"');
    expect(await submit({ action: 'look' }, '?lang=de')).toContain('Beschwerde absenden');
    expect(await submit({ action: 'complain', statement: STATEMENT, email: '' })).toContain(
      'data-testid="case-key"',
    );
    const shown = await submit({ action: 'look' });
    expect(shown).toContain('data-testid="complaint-state"');
    expect(shown).not.toContain('data-testid="send-complaint"');
  });

  it('its case says whether the page has a form for another', async () => {
    const { caseKey } = await fileComplaint();
    expect(await view(caseKey)).not.toHaveProperty('takesComplaints');
    const contested = await rights.me(await rights.visit({ bot: true }), 'contest', {
      body: { statement: 'no' },
      headers: headers(),
    });
    const key = (contested.json() as { caseKey: string }).caseKey;
    expect(await view(key)).toMatchObject({ status: 'open', takesComplaints: true });
  });

  it('is an unknown action under another law', async () => {
    const visit = await visitOther();
    const origin = OTHER_ORIGIN;
    const body = { statement: STATEMENT };
    const refused = await rights.me(visit, 'complain', { body, origin });
    expectError(refused, 'invalid-request');
    expect(refused.text).toBe((await rights.me(visit, 'explode', { body, origin })).text);
    const contested = await rights.me(visit, 'contest', { body, origin, headers: headers() });
    const { caseKey } = contested.json() as { caseKey: string };
    expectError(await rights.call('/case/complain', { caseKey, ...body }), 'invalid-request');
  });
});
