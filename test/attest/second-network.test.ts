import { afterAll, beforeAll, expect, it } from 'vitest';
import { ORIGIN } from '../support/constants.ts';
import { expectError } from '../support/expect.ts';
import { create, createPasskey } from '../support/passkey.ts';
import { desktopChrome } from '../support/samples.ts';
import { type Gpd, startGpd } from '../support/server.ts';
import { call, challengeOf, PURPOSES, type Visit, visit } from './support.ts';

/** A device that is doubted because it came from a second network of the day, and for nothing else (contract-2 section 16). */

let gpd: Gpd;
beforeAll(async () => {
  gpd = await startGpd({ settings: { GPD_TRUSTED_PROXIES: '127.0.0.1', GPD_RATE_PRIVACY: 'off' } });
});
afterAll(() => gpd.stop());

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

it('gets a passkey when the purpose was granted before that visit', async () => {
  const at = await from('asked-before', ['203.0.113.9', '198.51.100.9']);
  expect(at.answer.needsAttestation).toBe(true);
  const credential = create(createPasskey(), { origin: ORIGIN, challenge: await challengeOf(gpd, at) });
  expect((await call(gpd, 'verify', at, { credential })).status).toBe(200);
});

it('gets none when it is granted after it: the token is of a bundle without, and the next bundle is no first sighting', async () => {
  const first = await from('asked-after', ['203.0.113.9', '198.51.100.9'], ['device-identification']);
  expect(first.answer.needsAttestation).toBe(true);
  expectError(await call(gpd, 'options', first, {}), 'consent-missing');
  const again = await from('asked-after', ['198.51.100.9']);
  expect(again.answer.needsAttestation).toBe(false);
  expectError(await call(gpd, 'options', again, {}), 'no-retained-data');
});
