import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type BrowserName, launch, missingBrowser } from '../../browser/support/drivers.ts';
import { bannerOf } from '../../browser/support/shop.ts';
import { KID } from '../../support/constants.ts';
import { SEEN_WITHIN } from '../../support/expect.ts';
import { ask } from '../../support/http.ts';
import { describeWithTool } from '../../support/tools.ts';
import { type Console, signIn, startConsole, type Visitor } from '../support/console.ts';
import { rows } from '../support/data.ts';

/* On a machine with other work. */

/** The preview shows the real banner, which can neither grant nor record anything there. */

const TITLE = 'May <b>we</b> & you?';
const TABLES = ['banners', 'ledger_entries', 'consent_state', 'consent_principals', 'audit_log', 'decisions'];

async function stocked(): Promise<Console> {
  const site = await startConsole();
  const texts = { de: { title: 'Dürfen wir?', purposes: {} } };
  await site.gpd.json([
    'tenants',
    'set',
    KID,
    `banner.title=${TITLE}`,
    `banner.texts=${JSON.stringify(texts)}`,
  ]);
  return site;
}

for (const name of ['chromium', 'firefox'] as const satisfies readonly BrowserName[]) {
  describeWithTool(`the preview of the banner in ${name}`, missingBrowser(name), () => {
    let site: Console;
    let browser: Browser;
    let staff: Visitor;

    beforeAll(async () => {
      [site, browser] = await Promise.all([stocked(), launch(name)]);
      staff = await signIn(site.url, 'ada');
      await vi.waitFor(async () => {
        expect((await staff.get('/console/banner')).text).toContain('&lt;b&gt;we&lt;/b&gt;');
      }, SEEN_WITHIN);
    });
    afterAll(async () => {
      await browser?.close();
      await site?.stop();
    });

    /** Opens a tab that is signed in, and records every request that it sends. */
    async function tab(): Promise<{ page: Page; requests: string[] }> {
      const context = await browser.createBrowserContext();
      const page = await context.newPage();
      await context.setCookie(
        ...[...staff.cookies].map(([cookie, value]) => ({
          name: cookie,
          value,
          domain: '127.0.0.1',
          path: '/',
          sameSite: 'Lax' as const,
          httpOnly: true,
        })),
      );
      const requests: string[] = [];
      page.on('request', (request) =>
        requests.push(`${request.method()} ${new URL(request.url()).pathname}`),
      );
      return { page, requests };
    }
    const count = async (): Promise<number[]> =>
      Promise.all(TABLES.map(async (table) => (await rows(site, table)).length));
    const PAGES = [
      ['in the frame on the page of purposes', '/console/terms'],
      ['opened by itself', '/console/banner'],
    ] as const;

    it.each(PAGES)(
      '%s: asks with the tenant’s words, takes every answer, and tells nobody',
      async (_where, path) => {
        const before = await count();
        const { page, requests } = await tab();
        await page.setViewport({ width: 1280, height: 1000 });
        await page.goto(`${site.url}${path}`);
        await (await page.$('iframe'))?.scrollIntoView();
        const frame = path === '/console/banner' ? page.mainFrame() : page.frames()[1]!;
        await frame.waitForSelector('gpd-consent >>> [data-testid="consent-accept"]', { visible: true });
        const banner = bannerOf(frame as unknown as Page);
        expect(await banner.inside<string>('return root.textContent;')).toContain(TITLE);
        for (const choice of ['accept', 'reject']) {
          await frame.waitForSelector('gpd-consent >>> [data-testid="consent-accept"]', { visible: true });
          await banner.press(choice);
          await banner.waitGone(choice);
          expect(await banner.state()).toMatchObject({
            phase: 'decided',
            problem: null,
            granted: choice === 'accept' ? ['device-identification'] : [],
          });
          await frame.goto(`${site.url}/console/banner`);
        }
        expect(requests).toContain('GET /v1/embed.js');
        const allowedRequest =
          /^GET \/(?:console\/(?:terms|banner)(?:\/preview\.(?:js|css))?|v1\/embed\.js|assets\/[\w.]+|favicon\.ico)$/;
        expect(requests.filter((line) => !allowedRequest.test(line))).toEqual([]);
        expect(await count()).toEqual(before);
        const cut = await frame.evaluate(`(async () => {
        const tried = {};
        for (const [what, attempt] of Object.entries({
          storage: () => localStorage.length,
          cookie: () => document.cookie,
          parent: () => (parent === self ? document.domain.length.nothing.more : parent.document.title),
        })) {
          try { tried[what] = attempt(); } catch (error) { tried[what] = 'refused'; }
        }
        tried.origin = self.origin;
        const violated = new Promise((resolve) => addEventListener('securitypolicyviolation', (e) => resolve(e.effectiveDirective)));
        const sent = new XMLHttpRequest();
        try { sent.open('POST', '${site.url}/v1/consent/grant'); sent.send('{}'); } catch {}
        tried.connection = await violated;
        return tried;
      })()`);
        expect(cut).toEqual({
          storage: 'refused',
          cookie: 'refused',
          parent: 'refused',
          origin: 'null',
          connection: 'connect-src',
        });
        expect(await count()).toEqual(before);
        await page.browserContext().close();
      },
    );

    it('speaks the language that was chosen, with the tenant’s words for it', async () => {
      const { page } = await tab();
      await page.goto(`${site.url}/console/terms`);
      await page.select('#lang', 'de');
      await Promise.all([page.waitForNavigation(), page.click('form[action="/console/terms"] button')]);
      // The banner waits until its frame is in sight.
      await page.$eval('.preview-frame', (frame) => frame.scrollIntoView());
      const frame = page.frames()[1]!;
      await frame.waitForSelector('gpd-consent >>> [data-testid="consent-accept"]', { visible: true });
      const preview = bannerOf(frame as unknown as Page);
      const text = await preview.inside<string>('return root.textContent;');
      expect(text).toContain('Dürfen wir?');
      expect(text).toContain('Ablehnen');
      await preview.press('settings');
      await preview.waitFor('save');
      await page.browserContext().close();
    });

    it('may be framed by the console alone, is for staff alone, and passes over a language that is none', async () => {
      const { headers, text } = await staff.get('/console/banner?lang=../../x');
      expect(headers['content-security-policy']).toMatch(/frame-ancestors 'self'; sandbox allow-scripts$/);
      expect(headers['content-security-policy']).not.toMatch(/connect-src|unsafe|allow-same-origin/);
      expect(headers['x-frame-options']).toBe('SAMEORIGIN');
      expect(text).toContain('<html lang="en"');
      expect((await ask(site.url, '/console/banner')).status).toBe(303);
      for (const file of ['preview.js', 'preview.css']) {
        const open = await ask(site.url, `/console/banner/${file}`);
        expect(open.status).toBe(200);
        expect(open.headers['cross-origin-resource-policy']).toBe('cross-origin');
      }
      const terms = (await staff.get('/console/terms')).headers['content-security-policy'];
      expect(terms).toMatch(/frame-ancestors 'none'; frame-src 'self'$/);
      expect((await staff.get('/console/queue')).headers['content-security-policy']).not.toContain(
        'frame-src',
      );
    });
  });
}
