import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KID, ORIGIN } from '../../support/constants.ts';
import { expectCore, expectError, post, sessionOf } from '../../support/expect.ts';
import { ask, type Reply } from '../../support/http.ts';
import { desktopChrome, headlessChrome } from '../../support/samples.ts';
import { makeBundle } from '../../support/seal.ts';
import { type Gpd, startGpd } from '../../support/server.ts';

/** A second bundle of one session: what was seen since the moment of load (contract-2 section 18, ADR 0054). */

let gpd: Gpd;
let secret: string;
let otherSecret: string;

const keyOf = async (kid: string): Promise<string> =>
  (await gpd.json<{ key: string }>(['apikeys', 'create', kid, '--scope', 'secret', '--name', 'test'])).key;

beforeAll(async () => {
  gpd = await startGpd({
    tenants: [
      { kid: KID, origins: [ORIGIN] },
      { kid: 'other', origins: [ORIGIN] },
    ],
  });
  [secret, otherSecret] = [await keyOf(KID), await keyOf('other')];
});
afterAll(() => gpd.stop());

interface Sent {
  readonly after?: string;
  readonly session?: string;
  readonly signals?: Record<string, unknown>;
  readonly tenant?: number;
  readonly consent?: object;
}

function send({ after, session, signals, tenant = 0, consent }: Sent = {}): Promise<Reply> {
  const bundle = makeBundle(gpd.targets[tenant]!, {
    ...(signals && { signals }),
    ...(after !== undefined && { after }),
    ...(consent && { consent }),
  } as never);
  return post(gpd.url, bundle, { origin: ORIGIN, ...(session && { cookie: `gp_session=${session}` }) });
}

async function visit(sent: Sent = {}) {
  const reply = await send(sent);
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
    const pressed = {
      ...desktopChrome(device),
      input: { moves: 9, downUpMs: 3, forceless: true, offGrid: null },
    };
    const second = await visit({ after: first.requestId, session: first.session, signals: pressed });
    expect(second.requestId).not.toBe(first.requestId);
    expect(second.session).not.toBe(first.session);
    expect(second).toMatchObject({
      class: 'undeclared_automation',
      visitorId: first.visitorId,
    });
    expect(await decision(first.requestId)).toMatchObject({ supersededBy: second.requestId });
    expect(await decision(second.requestId)).not.toHaveProperty('supersededBy');
    const third = await visit({ after: second.requestId, session: second.session });
    expect(await decision(first.requestId)).toMatchObject({ supersededBy: second.requestId });
    expect(await decision(second.requestId)).toMatchObject({ supersededBy: third.requestId });
  });

  it('is refused without the session of that request, and keeps the one there is', async () => {
    const [mine, theirs] = [await visit(), await visit()];
    const after = mine.requestId;
    const wrong: readonly Sent[] = [
      { after },
      { after, session: theirs.session },
      { after, session: `${mine.session.slice(0, -2)}AA` },
      { after: theirs.requestId, session: mine.session },
      { after: 'req_00000000000000000000000000', session: mine.session },
      { after: '', session: mine.session },
      { after, session: mine.session, tenant: 1 },
    ];
    for (const sent of wrong) {
      const reply = await send(sent);
      expectError(reply, 'unauthenticated');
      // A page may read why.
      expect(reply.headers['access-control-allow-origin']).toBe(ORIGIN);
    }
    expect(await decision(after)).not.toHaveProperty('supersededBy');
    expectCore(await send({ after, session: mine.session }), 'ok');
  });

  it('finds its session among those of a sibling host, and in a bound one', async () => {
    const { requestId: after, session } = await visit();
    expectCore(await send({ after, session: `x; gp_session=${session}.root` }), 'ok');
  });

  it('reads the consent anew: a withdrawal is told before the session is looked at', async () => {
    const { requestId: after, session } = await visit();
    const consent = { purposes: [], gpc: false, version: 3, issuedAt: Date.now() };
    expectCore(await send({ after, session, consent }), 'consent-missing');
    expectCore(await send({ after, consent }), 'consent-missing');
    expect(await decision(after)).not.toHaveProperty('supersededBy');
  });

  it('is not superseded twice', async () => {
    const { requestId: after, session } = await visit();
    const [one, two] = [await visit({ after, session }), await visit({ after, session })];
    expect(await decision(after)).toMatchObject({ supersededBy: one.requestId });
    expect(await decision(two.requestId)).not.toHaveProperty('supersededBy');
  });

  it('of another tenant looks like none', async () => {
    const theirs = await visit({ tenant: 1 });
    const later = await visit({ tenant: 1, after: theirs.requestId, session: theirs.session });
    expect(await decision(theirs.requestId, otherSecret)).toMatchObject({ supersededBy: later.requestId });
    expect(await decision(theirs.requestId)).toMatchObject({ error: 'no-such-decision' });
  });
});

describe('a person whose session has two decisions', () => {
  const me = (action: string, { transparencyToken: token, session }: Awaited<ReturnType<typeof visit>>) =>
    ask(gpd.url, '/me', {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: ORIGIN, cookie: `gp_session=${session}` },
      body: JSON.stringify({ token, action }),
    });

  it('is told and forgets both by the token of the second, where the id is shared', async () => {
    const signals = headlessChrome('5'.repeat(32));
    Object.assign(signals.graphics, { renderer: null, vendor: null, canvasHash: null });
    const first = await visit({ signals });
    const second = await visit({ signals, after: first.requestId, session: first.session });
    expect(second.needsAttestation).toBe(true);
    const told = (await me('export', second)).text;
    expect(told).toContain(`"supersededBy":"${second.requestId}"`);
    expect(told).toContain(first.requestId);
    expect((await me('forget', second)).json()).toMatchObject({ forgotten: true, shared: true });
    for (const { requestId } of [first, second])
      expect(await decision(requestId)).toMatchObject({ error: 'no-such-decision' });
  });
});
