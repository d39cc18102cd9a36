import { beforeAll, describe, expect, it } from 'vitest';
import { KID, ORIGIN } from '../support/constants.ts';
import { ask } from '../support/http.ts';
import { started } from '../support/started.ts';
import { AT_ONCE, startDeliveries } from './support/deliveries.ts';
import { apiKey, startRights, type Visit } from './support/rights.ts';

/** A tenant's backend finds its own copies of erased data by references that it was told before (contract-2 section 20). */

const rights = started(() => startRights({ app: AT_ONCE }));
const webhook = started(() => startDeliveries(rights));
let secret: string;
beforeAll(async () => {
  secret = await apiKey(rights, 'secret');
});

const refOf = async ({ requestId }: Pick<Visit, 'requestId'>): Promise<unknown> => {
  const { ref } = (await rights.decision(requestId, secret)).json() as { ref: unknown };
  return ref;
};
const session = async (principalId: string) =>
  (await rights.call('/v1/sessions', { principalId }, secret)).json() as { token: string; subject: string };
const dpo = () => rights.as({ gpd_role: 'dpo', sub: 'dora' });

/** Each has to have erased the decision of the visit when it answers. */
const DOORS: Readonly<Record<string, (visit: Visit) => Promise<unknown>>> = {
  'the person, by the token': (visit) => rights.me(visit, 'forget'),
  'the person, without JavaScript': (visit) =>
    ask(rights.gpd.url, '/my-data', {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        origin: ORIGIN,
        cookie: `gp_session=${visit.session}`,
      },
      body: new URLSearchParams({ token: String(visit.token), action: 'forget' }).toString(),
    }),
  'the person, signed in': async ({ visitorId }) =>
    rights.call('/privacy/erase', {}, await rights.as({ gpd_role: 'subject', gpd_visitor: visitorId })),
  'a dpo, by the visitor': async ({ visitorId }) => rights.call('/privacy/erase', { visitorId }, await dpo()),
  'a dpo, by the request': async ({ requestId }) => rights.call('/privacy/erase', { requestId }, await dpo()),
  'the command line, by the request': ({ requestId }) =>
    rights.gpd.json(['erase', '--tenant', KID, '--request', requestId, '--yes']),
  'the command line, by the visitor': ({ visitorId }) =>
    rights.gpd.json(['erase', '--tenant', KID, '--visitor', visitorId, '--yes']),
  'the command line, by the principal': async (visit) => {
    const { token } = await session('linked');
    const headers = { cookie: `gp_session=${visit.session}`, origin: ORIGIN };
    expect((await rights.call('/v1/principals/link', { token: visit.token }, token, headers)).status).toBe(
      201,
    );
    return rights.gpd.json(['erase', '--tenant', KID, '--principal', 'linked', '--yes']);
  },
};

describe('decision.erased', () => {
  it.each(Object.entries(DOORS))('%s: names the ref that the decision had', async (door, erase) => {
    const device = Buffer.from(door.padEnd(16).slice(-16)).toString('hex');
    const visit = await rights.visit({ device });
    const ref = await refOf(visit);
    expect(ref).toMatch(/^[\w-]{43}$/);
    await expect
      .poll(() => webhook.deliveries.find(({ data }) => data['requestId'] === visit.requestId)?.data)
      .toMatchObject({ ref });
    await erase(visit);
    expect((await rights.decision(visit.requestId, secret)).status).toBe(404);
    const events = () =>
      webhook.deliveries.filter(({ type, data }) => type === 'decision.erased' && data['ref'] === ref);
    await expect.poll(events, { timeout: 10_000 }).toEqual([expect.objectContaining({ data: { ref } })]);
  });

  it('is not told of what retention deletes', async () => {
    const { requestId } = await rights.visit({ device: 'ee'.repeat(16) });
    const countBefore = webhook.deliveries.filter(({ type }) => type === 'decision.erased').length;
    await rights.sql(`UPDATE decisions SET decided_at = 1 WHERE request_id = '${requestId}'`);
    await rights.gpd.json(['retention', 'run']);
    expect((await rights.decision(requestId, secret)).status).toBe(404);
    await rights.visit();
    await expect.poll(() => webhook.deliveries.at(-1)?.type).toBe('decision.recorded');
    expect(webhook.deliveries.filter(({ type }) => type === 'decision.erased')).toHaveLength(countBefore);
  });
});

describe('subject', () => {
  const check = { principalId: 'anna', purpose: 'device-identification' };
  const CHECK = '/v1/consent/can-process';

  it('of a session, a state and a check is the one that subject.erased names', async () => {
    const { token, subject } = await session('anna');
    await rights.call('/v1/consent/grant', { principalId: 'anna', purposes: [check.purpose] }, token);
    expect((await rights.call(CHECK, check, secret)).json()).toMatchObject({ subject });
    const batch = await rights.call(`${CHECK}/batch`, { checks: [{ id: 'a', ...check }] }, secret);
    expect(batch.json()).toMatchObject({ results: [{ id: 'a', subject }] });
    expect((await rights.call('/v1/consent/state', { principalId: 'anna' }, secret)).json()).toMatchObject({
      subject,
    });
    expect((await rights.call('/v1/principals/erase', {}, token)).status).toBe(200);
    const erasedSubjects = () =>
      webhook.deliveries.flatMap(({ type, data }) => (type === 'subject.erased' ? [data['subject']] : []));
    await expect.poll(erasedSubjects, { timeout: 10_000 }).toContain(subject);
    expect((await rights.call(CHECK, check, secret)).json()).toMatchObject({ reason: 'erased', subject });
  });

  it('is told to a secret key alone', async () => {
    const { token } = await session('bert');
    for (const scope of ['read-only', 'operator'] as const) {
      const key = await apiKey(rights, scope);
      for (const path of [CHECK, '/v1/consent/state']) {
        const body = path === CHECK ? { ...check, principalId: 'bert' } : { principalId: 'bert' };
        const answer = (await rights.call(path, body, key)).json();
        expect(answer).not.toHaveProperty('subject');
      }
    }
    const ownState = (await rights.call('/v1/consent/state', { principalId: 'bert' }, token)).json();
    expect(ownState).not.toHaveProperty('subject');
  });
});
