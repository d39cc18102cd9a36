import { join } from 'node:path';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeInChromium, launchShell } from '../../browser/support/chromium.ts';
import { KID } from '../../support/constants.ts';
import { ask } from '../../support/http.ts';
import { freePort } from '../../support/ports.ts';
import { type Gpd, startGpd } from '../../support/server.ts';
import { startConsole } from '../support/console.ts';

/**
 * Staff without an identity provider accept an invitation with
 * Chromium's virtual authenticator, sign in, and are removed.
 */

const { SHOTS } = process.env;

const AUTHENTICATOR = {
  protocol: 'ctap2',
  transport: 'internal',
  hasResidentKey: true,
  hasUserVerification: true,
  isUserVerified: true,
  automaticPresenceSimulation: true,
} as const;

describeInChromium('staff with a passkey', () => {
  let gpd: Gpd;
  let browser: Browser;
  let page: Page;
  let cdp: CDPSession;
  let base: string;
  let authenticatorId: string;

  beforeAll(async () => {
    const port = await freePort();
    base = `http://localhost:${port}`;
    [gpd, browser] = await Promise.all([
      startGpd({ args: ['--port', String(port)], settings: { GPD_BASE_URL: base } }),
      launchShell(),
    ]);
    page = await browser.newPage();
    cdp = await page.context().newCDPSession(page);
    await cdp.send('WebAuthn.enable');
    ({ authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', { options: AUTHENTICATOR }));
  });
  afterAll(async () => {
    await browser?.close();
    await gpd?.stop();
  });

  const inviting = (name: string, role: string) => ['staff', 'invite', name, '--role', role, '--tenant', KID];
  const invite = async (name: string, role: string): Promise<string> =>
    (await gpd.json<{ link: string }>(inviting(name, role))).link;

  async function joinBy(link: string): Promise<void> {
    // A link that differs from the open page only in its fragment would not load the page again.
    await page.goto('about:blank');
    await page.goto(link);
    await page.getByRole('button', { name: 'Make a passkey' }).click();
  }

  it('joins by the invitation once, signs in, and is out when removed', async () => {
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('console', (message) => {
      if (/Content Security Policy/.test(message.text())) faults.push(message.text());
    });
    const first = await invite('Rosa Reviewer', 'reviewer');
    const link = await invite('Rosa Reviewer', 'reviewer');
    await joinBy(first);
    await page.getByRole('heading', { name: 'This invitation is no longer valid' }).waitFor();
    // That passkey exists all the same, and the authenticator would choose between two.
    await cdp.send('WebAuthn.clearCredentials', { authenticatorId });
    await page.goto('about:blank');
    await page.goto(link);
    await page.getByRole('button', { name: 'Make a passkey' }).waitFor();
    expect(page.url()).not.toContain('#');
    // The switch of languages keeps the invitation, which is out of the address.
    for (const [language, name] of [
      ['Deutsch', 'Passkey erzeugen'],
      ['English', 'Make a passkey'],
    ] as const) {
      await page.locator('.languages summary').click();
      await page.getByRole('link', { name: language }).click();
      await page.getByRole('button', { name }).waitFor();
    }
    if (SHOTS) await page.screenshot({ path: join(SHOTS, 'staff-join.png') });
    await page.getByRole('button', { name: 'Make a passkey' }).click();
    await page.waitForURL(/\/console\/queue/);
    await page.getByRole('link', { name: 'Rosa Reviewer' }).waitFor();
    const secondInvite = await gpd.cli(inviting('Rosa Reviewer', 'dpo'));
    expect(secondInvite).toMatchObject({ code: 7, stdout: '' });

    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('link', { name: 'Sign in again' }).click();
    await page.getByRole('button', { name: 'Sign in with a passkey' }).waitFor();
    if (SHOTS) await page.screenshot({ path: join(SHOTS, 'staff-sign-in.png') });
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
    await page.getByRole('link', { name: 'Rosa Reviewer' }).waitFor();

    await gpd.json(['staff', 'remove', 'Rosa Reviewer', '--yes']);
    await page.goto(`${base}/console`);
    expect(page.url()).toContain('/console/login');
    const rows = await gpd.json<{ action: string; role: string }[]>(['audit', KID]);
    const actions = 'invited invited joined signed-in signed-out signed-in removed'.split(' ');
    expect(rows.map(({ action }) => action).reverse()).toEqual(actions.map((name) => `staff.${name}`));
    expect(faults).toEqual([]);
  });

  it('an operator sees what names nobody', async () => {
    await joinBy(await invite('Ole', 'operator'));
    await page.waitForURL(/\/console\/overview/);
    const cookies = await page.context().cookies();
    const headers = { cookie: `gpd_console=${cookies.find(({ name }) => name === 'gpd_console')?.value}` };
    const statusOf = async (path: string) => (await ask(gpd.url, `/console/${path}`, { headers })).status;
    for (const path of ['queue', 'subjects', 'audit', 'register', 'holds'])
      expect(await statusOf(path)).toBe(403);
    for (const path of ['overview', 'ledger', 'keys', 'terms']) expect(await statusOf(path)).toBe(200);
  });

  it('GPD_OIDC_ISSUER ends it, for open sessions too', async () => {
    const cookies = await page.context().cookies();
    const headers = { cookie: `gpd_console=${cookies.find(({ name }) => name === 'gpd_console')?.value}` };
    expect((await ask(gpd.url, '/console/overview', { headers })).status).toBe(200);
    await gpd.stop();
    const site = await startConsole({ gpd: { dataDir: gpd.dataDir } });
    try {
      expect((await ask(site.url, '/console/overview', { headers })).status).toBe(303);
      expect((await ask(site.url, '/console/join')).status).toBe(404);
      const answer = await ask(site.url, '/console/passkey', {
        method: 'POST',
        headers: { origin: new URL(site.url).origin, 'content-type': 'application/x-www-form-urlencoded' },
        body: 'answer=',
      });
      expect(answer.status).toBe(404);
    } finally {
      await site.stop();
    }
  });
});
