import { expect, it } from 'vitest';
import { ORIGIN } from '../../support/constants.ts';
import { ask } from '../../support/http.ts';
import { started } from '../../support/started.ts';
import { bearer, createBrowser, startApi } from './support/api.ts';

/** The answer of `POST /v1/consent/state` to a browser. */

const api = started(() => startApi({ purposes: [{ id: 'ads' }, { id: 'orders', gpc: 'ignore' }] }));

/** A browser whose account has answered takes these choices over without a question (contract-2 section 20). */
it('a browser reads all of its state that a choice consists of', async () => {
  const headers = { ...bearer(api.keys.operator), 'content-type': 'application/json' };
  const body = JSON.stringify({ purposes: [{ id: 'mail', title: 'Mail', gpc: 'ask' }] });
  const saved = await ask(api.gpd.url, '/v1/consent/purposes', { method: 'PUT', headers, body });
  const definition = (saved.json() as { entries: { seq: number }[] }).entries[0]?.seq ?? -1;
  const browser = createBrowser();
  const { principalId } = browser;
  const granted = await api.write('grant', { principalId, purposes: ['mail'], gpc: true, overGpc: true });
  await api.write('deny', { principalId, purposes: ['ads'] });
  const reply = await api.post('/v1/consent/state', browser, api.keys.publishable, { origin: ORIGIN });
  const { purposes } = reply.json() as { purposes: { purpose: string }[] };
  const [mail, ads, orders] = ['mail', 'ads', 'orders'].map((id) =>
    purposes.find(({ purpose }) => purpose === id),
  );
  expect(mail).toEqual({
    ...{ purpose: 'mail', choice: 'granted', allowed: true, reason: 'granted', given: 'unknown' },
    ...{ definition, overGpc: true, policyVersion: 0 },
    at: expect.any(String),
    expiresAt: expect.any(String),
    proof: { seq: granted.seq, hash: granted.hash },
  });
  // Without an entry that defines them, these purposes have no definition to name.
  expect(ads).toMatchObject({ choice: 'denied' });
  expect(Object.keys(ads ?? {})).not.toContain('overGpc');
  expect([...Object.keys(ads ?? {}), ...Object.keys(orders ?? {})]).not.toContain('definition');
});
