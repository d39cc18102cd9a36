import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, createBrowser, PURPOSE, startApi } from '../../consent/app/support/api.ts';
import { ORIGIN } from '../../support/constants.ts';
import { expectError } from '../../support/expect.ts';

/** `POST /v1/consent/receipts`: what a person keeps of their choices. */

const RECEIPTS = '/v1/consent/receipts';
let api: Api;
const browser = createBrowser();
const page = { origin: ORIGIN };

beforeAll(async () => {
  api = await startApi({ purposes: [{ id: 'analytics' }] });
  const grant = { ...browser, purposes: [PURPOSE], policyVersion: 0 };
  expect((await api.post('/v1/consent/grant', grant, api.keys.publishable, page)).status).toBe(201);
  const denial = { ...browser, purposes: ['analytics'], gpc: true };
  expect((await api.post('/v1/consent/deny', denial, api.keys.publishable, page)).status).toBe(201);
});
afterAll(() => api.stop());

const asBrowser = (headers = {}) =>
  api.post(RECEIPTS, browser, api.keys.publishable, { ...page, ...headers });

interface Document {
  readonly '@context': Readonly<Record<string, unknown>>;
  readonly '@graph': readonly Readonly<Record<string, unknown>>[];
}

it('the browser gets its choices as JSON-LD, newest first, in the terms of ISO/IEC TS 27560 and DPV', async () => {
  const reply = await asBrowser();
  expect(reply.status).toBe(200);
  expect(reply.headers['content-type']).toBe('application/ld+json');
  expect(reply.headers['cache-control']).toBe('no-store');
  expect(reply.headers['access-control-allow-origin']).toBe(ORIGIN);
  const { '@context': context, '@graph': graph } = reply.json() as Document;
  expect(context['dpv']).toBe('https://w3id.org/dpv#');
  expect(graph.map((one) => one['event_state'])).toContain('dpv:ConsentGiven');
  expect(graph[0]).toMatchObject({ event_state: 'dpv:ConsentRefused', gpc: true });
  for (const one of graph) {
    expect(one).toMatchObject({
      '@type': 'dpv:ConsentReceipt',
      schema_version: 'ISO/IEC TS 27560:2023',
      pii_principal: { pii_principal_id: browser.principalId },
    });
    // Every name is in the context, so that no processor drops it.
    for (const name of Object.keys(one)) expect(name.startsWith('@') || name in context, name).toBe(true);
  }
});

it('the same as a page that prints, in the language of the person, without a script', async () => {
  const german = await asBrowser({ accept: 'text/html', 'accept-language': 'de' });
  expect(german.headers['content-type']).toBe('text/html; charset=utf-8');
  expect(german.text).toContain('<html lang="de">');
  expect(german.text).toContain('Nachweis Ihrer Auswahl');
  expect(german.text).toContain('Rechtsgrundlage: Einwilligung');
  expect(german.text).toContain('Geräteerkennung');
  expect(german.text).not.toMatch(/<script|<link|src=/);
  const { '@graph': graph } = (await asBrowser()).json() as Document;
  expect(german.text.match(/data-testid="receipt"/g)).toHaveLength(graph.length);
  expect((await asBrowser({ accept: 'text/html' })).text).toContain('Receipt of your choices');
});

it('a session gets its own, and nobody gets another’s', async () => {
  await api.write('grant', { principalId: 'alice', purposes: [PURPOSE], policyVersion: 0 });
  const session = await api.session('alice');
  const ofAlice = await api.post(RECEIPTS, { principalId: 'alice' }, session);
  expect((ofAlice.json() as Document)['@graph']).toHaveLength(1);
  expectError(await api.post(RECEIPTS, { principalId: 'bob' }, session), 'not-your-principal');
  const stranger = { ...createBrowser(), principalId: browser.principalId };
  expectError(await api.post(RECEIPTS, stranger, api.keys.publishable, page), 'not-your-principal');
  expectError(await api.post(RECEIPTS, browser, api.keys.publishable), 'origin-not-allowed');
  expectError(await api.post(RECEIPTS, browser, ''), 'unauthenticated');
});
