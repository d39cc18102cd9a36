import { beforeAll, describe, expect, it, vi } from 'vitest';
import { addApiKey } from '../support/api-key.ts';
import { KID, ORIGIN, OTHER, OTHER_ORIGIN } from '../support/constants.ts';
import { expectError, SEEN_WITHIN } from '../support/expect.ts';
import { postJson } from '../support/http.ts';
import { desktopChrome } from '../support/samples.ts';
import { startGpd } from '../support/server.ts';
import { started } from '../support/started.ts';
import { create, createPasskey } from './authenticator.ts';
import { call, challengeOf, PURPOSES, type Visit, visit } from './support.ts';

/** A passkey needs consent. The other tenant proves consent by its own ledger. */

const gpd = started(() =>
  startGpd({
    tenants: [
      { kid: KID, origins: [ORIGIN] },
      { kid: OTHER, origins: [OTHER_ORIGIN] },
    ],
    settings: { GPD_TRUSTED_PROXIES: '127.0.0.1', GPD_RATE_PRIVACY: 'off' },
  }),
);
let secret: string;
beforeAll(async () => {
  await gpd.json(['tenants', 'set', OTHER, 'consent.basis=ledger']);
  secret = await addApiKey(gpd, 'secret', OTHER);
  await vi.waitFor(async () => expect((await write('grant', 'warm-up')).status).toBe(201), SEEN_WITHIN);
});

const post = (path: string, body: object) =>
  postJson(gpd.url, `/v1/consent/${path}`, body, { authorization: `Bearer ${secret}` });
const write = (action: string, principalId: string, purposes: readonly string[] = PURPOSES) =>
  post(action, { principalId, purposes });
const createFor = async (at: Visit) =>
  create(createPasskey(), { origin: at.origin, challenge: await challengeOf(gpd, at) });

/** One device visits from each network in turn; the last visit agrees to these purposes. */
async function from(device: string, networks: readonly string[], purposes: readonly string[] = PURPOSES) {
  const signals = desktopChrome(device);
  let last: Visit | null = null;
  for (const [i, network] of networks.entries()) {
    const agreed = i === networks.length - 1 ? purposes : ['device-identification'];
    last = await visit(gpd, { signals, purposes: agreed, headers: { 'x-forwarded-for': network } });
  }
  return last as Visit;
}

describe('a device that is doubted because it came from a second network of the day (contract-2 section 16)', () => {
  it('gets a passkey when the purpose was granted before that visit', async () => {
    const at = await from('asked-before', ['203.0.113.9', '198.51.100.9']);
    expect(at.answer.needsAttestation).toBe(true);
    expect((await call(gpd, 'verify', at, { credential: await createFor(at) })).status).toBe(200);
  });

  it('gets none when it is granted after it: the token is of a bundle without, and the next bundle is no first sighting', async () => {
    const first = await from('asked-after', ['203.0.113.9', '198.51.100.9'], ['device-identification']);
    expect(first.answer.needsAttestation).toBe(true);
    expectError(await call(gpd, 'options', first, {}), 'consent-missing');
    const again = await from('asked-after', ['198.51.100.9']);
    expect(again.answer.needsAttestation).toBe(false);
    expectError(await call(gpd, 'options', again, {}), 'no-retained-data');
  });
});

describe('a proven consent', () => {
  async function proven(principalId: string, purposes: readonly string[] = PURPOSES): Promise<Visit> {
    await write('grant', principalId, purposes);
    const check = await post('can-process', { principalId, purpose: 'device-identification' });
    const { proof } = check.json() as { proof: { seq: number; hash: string } };
    return visit(gpd, { target: gpd.targets[1]!, origin: OTHER_ORIGIN, consent: { principalId, proof } });
  }

  it('lets its person make a passkey, without the tenant having defined the purpose', async () => {
    const at = await proven('anna');
    expect(at.answer.consentState).toMatchObject({ basis: 'proven', purposes: PURPOSES });
    expect((await call(gpd, 'verify', at, { credential: await createFor(at) })).status).toBe(200);
  });

  it.each(PURPOSES)('withdrawn since refuses options and verify at once: %s', async (purpose) => {
    const at = await proven(`bert-${purpose}`);
    const credential = await createFor(at);
    expect((await write('withdraw', `bert-${purpose}`, [purpose])).status).toBe(201);
    expectError(await call(gpd, 'verify', at, { credential }), 'consent-missing');
    expectError(await call(gpd, 'options', at, {}), 'consent-missing');
  });

  it('to the device alone allows no passkey, whatever the bundle says', async () => {
    const at = await proven('carl', ['device-identification']);
    expect(at.answer.consentState.purposes).toEqual(['device-identification']);
    expectError(await call(gpd, 'options', at, {}), 'consent-missing');
  });
});
