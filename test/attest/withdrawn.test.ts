import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { addApiKey } from '../support/api-key.ts';
import { KID, ORIGIN } from '../support/constants.ts';
import { expectError, SEEN_WITHIN } from '../support/expect.ts';
import { postJson } from '../support/http.ts';
import { create, createPasskey } from '../support/passkey.ts';
import { type Gpd, startGpd } from '../support/server.ts';
import { call, challengeOf, PURPOSES, type Visit, visit } from './support.ts';

/** A tenant that proves consent by its own ledger: what is withdrawn after the visit refuses the ceremony at once. */

let gpd: Gpd;
let secret: string;
beforeAll(async () => {
  gpd = await startGpd({ settings: { GPD_RATE_PRIVACY: 'off' } });
  await gpd.cli(['tenants', 'set', KID, 'consent.basis=ledger']);
  secret = await addApiKey(gpd);
  await vi.waitFor(async () => expect((await write('grant', 'warm-up')).status).toBe(201), SEEN_WITHIN);
});
afterAll(() => gpd.stop());

const write = (action: string, principalId: string, purposes: readonly string[] = PURPOSES) =>
  postJson(
    gpd.url,
    `/v1/consent/${action}`,
    { principalId, purposes },
    { authorization: `Bearer ${secret}` },
  );

async function proven(principalId: string, purposes: readonly string[] = PURPOSES): Promise<Visit> {
  await write('grant', principalId, purposes);
  const check = await postJson(
    gpd.url,
    '/v1/consent/can-process',
    { principalId, purpose: 'device-identification' },
    { authorization: `Bearer ${secret}` },
  );
  const { proof } = check.json() as { proof: { seq: number; hash: string } };
  return visit(gpd, { consent: { principalId, proof } });
}

describe('a proven consent', () => {
  it('lets its person make a passkey, without the tenant having defined the purpose', async () => {
    const at = await proven('anna');
    expect(at.answer.consentState).toMatchObject({ basis: 'proven', purposes: PURPOSES });
    const credential = create(createPasskey(), { origin: ORIGIN, challenge: await challengeOf(gpd, at) });
    expect((await call(gpd, 'verify', at, { credential })).status).toBe(200);
  });

  it.each(PURPOSES)('withdrawn since refuses options and verify at once: %s', async (purpose) => {
    const at = await proven(`bert-${purpose}`);
    const credential = create(createPasskey(), { origin: ORIGIN, challenge: await challengeOf(gpd, at) });
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
