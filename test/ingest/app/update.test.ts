import { beforeAll, describe, expect, it } from 'vitest';
import { MINUTE } from '../../../src/lib/clock.ts';
import { KID, ORIGIN } from '../../support/constants.ts';
import { expectCore, expectError, post, sessionOf } from '../../support/expect.ts';
import { ask, postJson, type Reply } from '../../support/http.ts';
import { desktopChrome, headlessChrome } from '../../support/samples.ts';
import { createBundle } from '../../support/seal.ts';
import { startGpd } from '../../support/server.ts';
import { started } from '../../support/started.ts';

/** A second bundle of one session: what was seen since the moment of load (contract-2 section 18, ADR 0054). */

const gpd = started(() =>
  startGpd({
    tenants: [
      { kid: KID, origins: [ORIGIN] },
      { kid: 'other', origins: [ORIGIN] },
    ],
    app: { clock: () => Date.now() + aheadMs },
  }),
);
let secret: string;
let otherSecret: string;
/** The server's clock and the browsers' clocks are ahead by this many milliseconds. */
let aheadMs = 0;

const keyOf = async (kid: string): Promise<string> =>
  (await gpd.json<{ key: string }>(['apikeys', 'create', kid, '--scope', 'secret', '--name', 'test'])).key;

beforeAll(async () => {
  [secret, otherSecret] = [await keyOf(KID), await keyOf('other')];
});

interface Sent {
  readonly after?: string;
  readonly session?: string;
  readonly signals?: Record<string, unknown>;
  readonly tenant?: number;
  readonly consent?: object;
}

function send({ after, session, signals, tenant = 0, consent }: Sent = {}): Promise<Reply> {
  const bundle = createBundle(gpd.targets[tenant]!, {
    clientTs: Date.now() + aheadMs,
    ...(signals && { signals }),
    ...(after !== undefined && { after }),
    ...(consent && { consent }),
  } as never);
  return post(gpd.url, bundle, { origin: ORIGIN, ...(session && { cookie: `gp_session=${session}` }) });
}

async function visit(options: Sent = {}) {
  const reply = await send(options);
  return { ...expectCore(reply, 'ok'), session: sessionOf(reply) };
}

async function decision(requestId: string, key = secret) {
  const headers = { authorization: `Bearer ${key}` };
  return (await ask(gpd.url, `/v1/decisions/${requestId}`, { headers })).json();
}

describe('a bundle that supersedes an earlier one', () => {
  it('is answered with a request of its own, and the first names it', async () => {
    const device = '6'.repeat(32);
    const first = await visit({ signals: desktopChrome(device) });
    const input = { moves: 9, downUpMs: 3, forceless: true, offGrid: null };
    const pressed = { ...desktopChrome(device), input };
    const second = await visit({ after: first.requestId, session: first.session, signals: pressed });
    expect(second.requestId).not.toBe(first.requestId);
    expect(second.session).not.toBe(first.session);
    expect(second).toMatchObject({ class: 'undeclared_automation', visitorId: first.visitorId });
    expect(await decision(first.requestId)).toMatchObject({ supersededBy: second.requestId });
    expect(await decision(second.requestId)).not.toHaveProperty('supersededBy');
    const third = await visit({ after: second.requestId, session: second.session });
    // It is not superseded twice.
    const twin = await visit({ after: first.requestId, session: first.session });
    expect(await decision(twin.requestId)).not.toHaveProperty('supersededBy');
    expect(await decision(first.requestId)).toMatchObject({ supersededBy: second.requestId });
    expect(await decision(second.requestId)).toMatchObject({ supersededBy: third.requestId });
  });

  it('is refused without the session of that request, and keeps the one there is', async () => {
    const [mine, theirs] = [await visit(), await visit()];
    const after = mine.requestId;
    const refusals: readonly Sent[] = [
      { after },
      { after, session: theirs.session },
      { after, session: `${mine.session.slice(0, -2)}AA` },
      { after: theirs.requestId, session: mine.session },
      { after: 'req_00000000000000000000000000', session: mine.session },
      { after: '', session: mine.session },
      { after, session: mine.session, tenant: 1 },
    ];
    for (const options of refusals) {
      const reply = await send(options);
      expectError(reply, 'unauthenticated');
      // A page may read why.
      expect(reply.headers['access-control-allow-origin']).toBe(ORIGIN);
    }
    expect(await decision(after)).not.toHaveProperty('supersededBy');
    expectCore(await send({ after, session: mine.session }), 'ok');
  });

  it('finds its session among those of a sibling host', async () => {
    const { requestId: after, session } = await visit();
    expectCore(await send({ after, session: `x; gp_session=${session}` }), 'ok');
  });

  it('reads the consent again: a withdrawal is reported before the session is read', async () => {
    const { requestId: after, session } = await visit();
    const consent = { purposes: [], gpc: false, version: 3, issuedAt: Date.now() };
    expectCore(await send({ after, session, consent }), 'consent-missing');
    expectCore(await send({ after, consent }), 'consent-missing');
    expect(await decision(after)).not.toHaveProperty('supersededBy');
  });

  it('of another tenant looks like an unknown one', async () => {
    const theirs = await visit({ tenant: 1 });
    const later = await visit({ tenant: 1, after: theirs.requestId, session: theirs.session });
    expect(await decision(theirs.requestId, otherSecret)).toMatchObject({ supersededBy: later.requestId });
    expect(await decision(theirs.requestId)).toMatchObject({ error: 'no-such-decision' });
  });
});

describe('a person whose session has two decisions', () => {
  const me = (action: string, { transparencyToken: token, session }: Awaited<ReturnType<typeof visit>>) =>
    postJson(gpd.url, '/me', { token, action }, { origin: ORIGIN, cookie: `gp_session=${session}` });
  /** Identical devices share this id, so that a token reaches requests and no device. */
  function sharedDevice() {
    const signals = headlessChrome('5'.repeat(32));
    Object.assign(signals.graphics, { renderer: null, vendor: null, canvasHash: null });
    return signals;
  }

  it('reads and forgets both with the token of the first', async () => {
    const signals = sharedDevice();
    const first = await visit({ signals });
    const second = await visit({ signals, after: first.requestId, session: first.session });
    const third = await visit({ signals, after: second.requestId, session: second.session });
    expect(first.needsAttestation).toBe(true);
    const exportText = (await me('export', first)).text;
    expect(exportText).toContain(`"supersededBy":"${second.requestId}"`);
    expect(exportText).toContain(`"supersededBy":"${third.requestId}"`);
    expect((await me('forget', first)).json()).toMatchObject({ forgotten: true, shared: true });
    for (const { requestId } of [first, second, third])
      expect(await decision(requestId)).toMatchObject({ error: 'no-such-decision' });
  });

  it('loses nothing to somebody who copied the session and superseded the first decision', async () => {
    const signals = sharedDevice();
    const theirs = await visit({ signals });
    const copied = await visit({ after: theirs.requestId, session: theirs.session });
    expect((await me('export', copied)).text).not.toContain(theirs.requestId);
    expect((await me('forget', copied)).json()).toMatchObject({ forgotten: true });
    expect(await decision(copied.requestId)).toMatchObject({ error: 'no-such-decision' });
    expect(await decision(theirs.requestId)).toMatchObject({ requestId: theirs.requestId });
  });
});

describe('a request is no longer superseded', () => {
  const refused = async (options: Sent): Promise<void> => {
    expectError(await send(options), 'unauthenticated');
  };

  it('half an hour after it', async () => {
    const [inTime, afterLimit] = [await visit(), await visit()];
    aheadMs = 29 * MINUTE;
    const { requestId: after, session } = inTime;
    const second = await visit({ after, session });
    aheadMs = 31 * MINUTE;
    await refused({ after: afterLimit.requestId, session: afterLimit.session });
    // Each request has its own half hour.
    expectCore(await send({ after: second.requestId, session: second.session }), 'ok');
    aheadMs = 0;
    // A clock that was set back.
    await refused({ after: second.requestId, session: second.session });
    expect(await decision(afterLimit.requestId)).not.toHaveProperty('supersededBy');
  });

  it('after 32 others in a row', async () => {
    let last = await visit();
    for (let n = 0; n < 32; n++) last = await visit({ after: last.requestId, session: last.session });
    await refused({ after: last.requestId, session: last.session });
    expect(await decision(last.requestId)).not.toHaveProperty('supersededBy');
  });

  it('once it is linked to a principal that the bundle does not prove', async () => {
    const callAs = (path: string, body: object, key: string, headers = {}) =>
      postJson(gpd.url, path, body, { authorization: `Bearer ${key}`, ...headers });
    const purposes = ['device-identification'];
    const grant = await callAs('/v1/consent/grant', { principalId: 'anna', purposes }, secret);
    const { seq, hash } = grant.json() as { seq: number; hash: string };
    const first = await visit();
    const opened = await callAs('/v1/sessions', { principalId: 'anna' }, secret);
    const { token } = opened.json() as { token: string };
    const browser = { origin: ORIGIN, cookie: `gp_session=${first.session}` };
    const body = { token: first.transparencyToken };
    expect((await callAs('/v1/principals/link', body, token, browser)).status).toBe(201);
    const takeover = { after: first.requestId, session: first.session };
    const receipt = { purposes, gpc: false, version: 3, issuedAt: Date.now() };
    await refused(takeover);
    await refused({ ...takeover, consent: { ...receipt, principalId: 'anna' } });
    await refused({ ...takeover, consent: { ...receipt, principalId: 'ben', proof: { seq, hash } } });
    expect(await decision(first.requestId)).not.toHaveProperty('supersededBy');
    const consent = { ...receipt, principalId: 'anna', proof: { seq, hash } };
    const second = await visit({ ...takeover, consent });
    expect(await decision(first.requestId)).toMatchObject({ supersededBy: second.requestId });
  });
});
