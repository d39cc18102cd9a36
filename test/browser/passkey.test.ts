import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { IngestResponse } from '../../src/schema/responses.ts';
import { type Gpd, startGpd } from '../support/server.ts';
import { describeInChromium, launchShell } from './support/chromium.ts';

/** The page of docs/integrate.md, "When the id is shared", word for word, with Chromium's virtual authenticator. */

const text = readFileSync(new URL('../../docs/integrate.md', import.meta.url), 'utf8');
const [, section = ''] = /^## When the id is shared\n([\s\S]*?)^## /m.exec(text) ?? [];
const [, example = ''] = /```html\n([\s\S]*?)```/.exec(section) ?? [];

const AUTHENTICATOR = {
  protocol: 'ctap2',
  transport: 'internal',
  hasResidentKey: true,
  hasUserVerification: true,
  isUserVerified: true,
  automaticPresenceSimulation: true,
} as const;

describeInChromium('browser/passkey', () => {
  let gpd: Gpd;
  let shop: Server;
  let origin: string;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let cdp: CDPSession;
  let authenticatorId: string;
  let script = '';

  beforeAll(async () => {
    shop = createServer(({ url }, response) => {
      response.setHeader('content-type', 'text/html; charset=utf-8');
      const at = example.replaceAll('https://id.shop.example', `http://localhost:${gpd.port}`);
      response.end(
        `<!doctype html><title>Shop</title><link rel="icon" href="data:,">${url === '/own' ? script : at}`,
      );
    });
    await new Promise<void>((resolve) => shop.listen(0, 'localhost', resolve));
    origin = `http://localhost:${(shop.address() as AddressInfo).port}`;
    gpd = await startGpd({
      tenants: [{ kid: 'shop', origins: [origin] }],
      settings: { GPD_RATE_PRIVACY: 'off' },
    });
    browser = await launchShell();
  });
  afterAll(async () => {
    await browser?.close();
    shop?.close();
    await gpd?.stop();
  });
  beforeEach(async () => {
    context = await browser.newContext();
    page = await context.newPage();
    cdp = await context.newCDPSession(page);
    await cdp.send('WebAuthn.enable');
    await addAuthenticator();
  });
  afterEach(() => context.close());

  async function addAuthenticator(over: object = {}): Promise<void> {
    const authenticator = await cdp.send('WebAuthn.addVirtualAuthenticator', {
      options: { ...AUTHENTICATOR, ...over },
    });
    ({ authenticatorId } = authenticator);
  }

  const replies: { path: string; status: number; body: unknown }[] = [];
  /** A visit, until the button is offered. */
  async function visit(): Promise<IngestResponse> {
    replies.length = 0;
    page.removeAllListeners('response');
    page.on('response', async (response) => {
      const path = new URL(response.url()).pathname;
      if (!path.startsWith('/_fp/') || response.request().method() !== 'POST') return;
      const body = response.ok() ? await response.json() : null;
      replies.push({ path, status: response.status(), body });
    });
    await page.goto(origin);
    await page.locator('#apart').waitFor();
    const verdict = () => replies.find(({ path }) => path === '/_fp/i/v1')?.body;
    // The page has its answer before this listener does.
    await expect.poll(verdict).toBeDefined();
    return verdict() as IngestResponse;
  }
  const answered = (path: string) => replies.find((reply) => reply.path === `/_fp/attest/v1/${path}`);
  const pressed = async (path = 'verify') => {
    await page.click('#apart');
    await expect.poll(() => answered(path)).toBeDefined();
    return answered(path);
  };

  it('asks nobody on load, makes a passkey in a click, and knows the device again by it', async () => {
    const before = await visit();
    expect(before).toMatchObject({ needsAttestation: true, reason: 'ok' });
    expect(answered('options')).toBeUndefined();
    const confirmed = (await pressed())?.body as IngestResponse;
    expect(answered('options')?.body).toMatchObject({ ceremony: 'create' });
    expect(confirmed).toMatchObject({
      needsAttestation: false,
      confidence: 0.6,
      attested: { by: 'passkey', deviceBound: true },
      class: before.class,
      suspectScore: before.suspectScore,
    });
    await page.locator('#apart').waitFor({ state: 'hidden' });
    // The click took up the verdict of the load.
    expect(replies.filter(({ path }) => path === '/_fp/i/v1')).toHaveLength(1);

    await visit();
    const again = (await pressed())?.body as IngestResponse;
    expect(answered('options')?.body).toMatchObject({ ceremony: 'get' });
    expect(again).toMatchObject({ visitorId: confirmed.visitorId, confidence: 0.99 });
    expect(confirmed.visitorId).not.toBe(before.visitorId);
  });

  it('leaves the answer as it was when the person declines, and asks again in the next click', async () => {
    await visit();
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false });
    await pressed('options');
    await expect
      .poll(() => page.evaluate('document.hasFocus() && !document.querySelector("#apart").hidden'))
      .toBe(true);
    expect(answered('verify')).toBeUndefined();
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true });
    expect((await pressed())?.status).toBe(200);
  });

  const consent = (purposes: readonly string[]) =>
    JSON.stringify({
      consent: { purposes, gpc: false, version: 1, issuedAt: Date.now() },
      attest: 'passkey',
    });
  const BOTH = ['device-identification', 'device-attestation'];

  it('is over when nobody touches the authenticator in time', async () => {
    await cdp.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId });
    await addAuthenticator({ automaticPresenceSimulation: false });
    await page.route('**/_fp/attest/v1/options', async (route) => {
      const response = await route.fetch();
      const body = await response.json();
      body.publicKey.timeout = 200;
      await route.fulfill({ response, json: body });
    });
    await visit();
    await page.evaluate(`document.querySelector('#apart').onclick = async () => {
      const { identify } = await import('http://localhost:${gpd.port}/v1/agent.js');
      window.told = await identify({ kid: 'shop', ...${consent(BOTH)} });
    }`);
    await page.click('#apart');
    await expect
      .poll(() => page.evaluate('window.told'))
      .toMatchObject({ passkey: 'declined', response: { needsAttestation: true } });
  });

  it('asks nobody without a click or without the purpose', async () => {
    replies.length = 0;
    // A script of the page: what a driver evaluates counts as a gesture.
    for (const [purposes, passkey] of [
      [BOTH, 'not-pressed'],
      [BOTH.slice(0, 1), 'not-consented'],
    ] as const) {
      script = `<script type="module">
        import { identify } from 'http://localhost:${gpd.port}/v1/agent.js';
        window.told = await identify({ kid: 'shop', ...${consent(purposes)} });
      </script>`;
      await page.goto(`${origin}/own`);
      await expect.poll(() => page.evaluate('window.told')).toMatchObject({ passkey });
    }
    expect(answered('options')).toBeUndefined();
  });
});
