import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BrowserContextOptions } from 'playwright-core';
import { expect, it } from 'vitest';
import { ask } from '../support/http.ts';
import { startGpd } from '../support/server.ts';
import { started } from '../support/started.ts';
import { axe } from './support/axe.ts';
import { describeInChromium, useTabs } from './support/chromium.ts';
import { startDemo } from './support/demo.ts';

/**
 * Looks at /docs/parts and at the pages without a suite of their looks: axe, overflow, and the font.
 * SHOTS=DIR saves a picture of each.
 */

const SHOTS = process.env['SHOTS'];
const VIEWS = fileURLToPath(new URL('../../views', import.meta.url));
const LOOKS: readonly (readonly [string, BrowserContextOptions])[] = [
  ['light 1440', { colorScheme: 'light', viewport: { width: 1440, height: 900 } }],
  ['dark 820', { colorScheme: 'dark', viewport: { width: 820, height: 1180 } }],
  ['light 390', { colorScheme: 'light', viewport: { width: 390, height: 844 } }],
  ['dark 320', { colorScheme: 'dark', viewport: { width: 320, height: 640 } }],
];
const PAGES = [
  ...['docs/parts', 'docs/parts?people', 'docs/parts?people&rtl', 'docs', 'my-data', 'my-data?kid=nobody'],
  ...['case', 'demo/mails', 'nowhere', 'console/login'],
];

describeInChromium('the parts', () => {
  const demo = started(() => startDemo());
  const { openTab } = useTabs();
  const at = (path: string): string => new URL(`/${path}`, demo.shop).href;

  it.each(LOOKS)('%s: axe finds nothing, nothing is wider than the window', async (look, options) => {
    const page = await openTab('about:blank', options);
    for (const path of PAGES) {
      await page.goto(at(path));
      await page.waitForLoadState(SHOTS ? 'networkidle' : 'load');
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      expect({ path, violations: await axe(page), wider }).toEqual({ path, violations: [], wider: 0 });
      const name = `${path.replace(/\W+/g, '-')}-${look.replace(' ', '-')}`;
      if (SHOTS) await page.screenshot({ path: join(SHOTS, `${name}.png`), fullPage: true });
    }
  });

  it('shows each part, in the font that gpd serves', async () => {
    const page = await openTab(at('docs/parts'));
    const parts = readdirSync(join(VIEWS, 'parts')).map((name) => name.replace(/\.ejs$/, ''));
    const texts = ['demo/parts', ...parts.map((name) => `parts/${name}`)].map((name) =>
      readFileSync(join(VIEWS, `${name}.ejs`), 'utf8'),
    );
    // The shared style sheets are for pages that are read without a server.
    expect(
      parts.filter((name) => !new RegExp(`include\\('(?:../parts/)?${name}'`).test(texts.join())),
    ).toEqual(['style']);
    const faces = await page.evaluate(async () => {
      await document.fonts.ready;
      return [...document.fonts].map(({ family, status }) => `${family.replaceAll('"', '')} ${status}`);
    });
    expect(faces).toEqual(['Inter loaded']);
  });

  it('a case key and an id are copied whole, and the button says so', async () => {
    const page = await openTab(at('docs/parts'));
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    for (const [part, text] of [
      ['case-key', '7J4CS-DET7E-9QK2M-4XW8P-B3N6HR'],
      ['id', 'con_01M8GTS53SA4G7K2JA9Q7PYWCS'],
    ] as const) {
      const section = page.getByRole('region', { name: part, exact: true });
      await section.getByRole('button', { name: 'Copy' }).first().click();
      await section.getByRole('button', { name: 'Copied' }).waitFor();
      expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(text);
    }
  });

  it('without a script there are no buttons that need one', async () => {
    const page = await openTab(at('docs/parts'), { javaScriptEnabled: false });
    expect(await page.getByRole('button', { name: /Copy|Print/ }).count()).toBe(0);
  });

  it('only the demo has the page', async () => {
    const gpd = await startGpd();
    const statuses = await Promise.all(
      [demo.shop, gpd.url].map(async (url) => (await ask(url, '/docs/parts')).status),
    );
    await gpd.stop();
    expect(statuses).toEqual([200, 404]);
  });
});
