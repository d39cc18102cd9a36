import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { started } from '../support/started.ts';
import { describeInChromium, useTabs } from './support/chromium.ts';
import { type ShopPage, startShop } from './support/shop.ts';

/** WCAG 2.2 AA as far as a program can judge it, and how the banner looks. */

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const GPC = "Object.defineProperty(Navigator.prototype, 'globalPrivacyControl', { get: () => true })";

const LAYER = ['button-name', 'target-size', 'color-contrast', 'heading-order', 'landmark-unique'];

interface View {
  readonly context: BrowserContextOptions;
  readonly page?: ShopPage;
  readonly script?: string;
}

const DESK = { viewport: { width: 1024, height: 720 } };
const VIEWS: Readonly<Record<string, View>> = {
  light: { context: { ...DESK, colorScheme: 'light' } },
  dark: { context: { ...DESK, colorScheme: 'dark' } },
  'right to left': { context: DESK, page: { language: 'ar' } },
  '320 px in Greek': { context: { viewport: { width: 320, height: 640 } }, page: { language: 'el' } },
  'forced colours in the dark': { context: { ...DESK, forcedColors: 'active', colorScheme: 'dark' } },
  'text of 200 %': {
    context: { viewport: { width: 640, height: 480 } },
    page: { head: '<link rel="stylesheet" href="/large.css">' },
  },
  '320 px by 256, as at 400 %': {
    context: { viewport: { width: 320, height: 256 } },
    page: { language: 'de' },
  },
  'Global Privacy Control': { context: DESK, script: GPC },
};

describeInChromium('browser/banner for everybody', () => {
  const { openTab } = useTabs();
  const shop = started(() => startShop());
  let page: Page;

  async function open({ context, page: options, script }: View): Promise<void> {
    page = await openTab(shop.page(options), context, script);
    await page.getByTestId('consent-banner').waitFor();
  }

  async function expectAccessible(sees: readonly string[] = ['button-name', 'target-size']): Promise<void> {
    await page.evaluate(AXE);
    // axe looks for what is painted behind a text in body alone, and the banner is beside it.
    const move = (to: string): Promise<unknown> =>
      page.evaluate(`${to}.moveBefore(document.querySelector('gpd-consent'), ${to}.lastChild)`);
    await move('document.body');
    const run = `axe.run({ include: [['gpd-consent']] }, { runOnly: ${JSON.stringify(TAGS)} })`;
    const { violations, passes } = (await page.evaluate(run)) as AxeResults;
    await move('document.documentElement');
    expect(
      violations.map(({ id, nodes }) => [id, nodes.map((node) => [node.html, node.failureSummary])]),
    ).toEqual([]);
    // axe went into the shadow root: it saw the buttons.
    expect(passes.map(({ id }) => id)).toEqual(expect.arrayContaining([...sees]));
  }

  const inside = <T>(body: string): Promise<T> =>
    page.evaluate(`(() => { const root = document.querySelector('gpd-consent').shadowRoot; ${body} })()`);

  /** Nothing is cut off, nothing needs a second direction of scrolling. */
  async function expectReflow(selector: string): Promise<void> {
    const sizes = await inside<
      Record<string, number>
    >(`const e = root.querySelector(${JSON.stringify(selector)});
      const box = e.getBoundingClientRect();
      return { left: box.left, right: innerWidth - box.right, top: box.top, bottom: innerHeight - box.bottom,
        across: e.clientWidth - e.scrollWidth, page: innerWidth - document.documentElement.scrollWidth };`);
    for (const [side, room] of Object.entries(sizes)) expect([side, room >= 0]).toEqual([side, true]);
  }

  /** No answer has to be scrolled to while another is in sight. */
  async function expectAllAnswers(): Promise<void> {
    const hit = `return [...root.querySelectorAll('.layer .buttons button')].map((e) => { const { left, top, width, height } = e.getBoundingClientRect();
      return [2, height - 2].every((y) => root.elementFromPoint(left + width / 2, top + y) === e); });`;
    expect(await inside(hit)).toEqual([true, true, true]);
    const covers = `const layer = root.querySelector('.layer'); const { top } = root.querySelector('.layer button').getBoundingClientRect();
      return layer.scrollHeight <= layer.clientHeight && [...layer.querySelectorAll('p:not([hidden])')].some((p) => p.getBoundingClientRect().bottom > top);`;
    expect(await inside(covers)).toBe(false);
  }

  describe.each(Object.entries(VIEWS))('%s', (_name, view) => {
    it('the first layer, the settings and the button that stays', async () => {
      await open(view);
      await expectAccessible(LAYER);
      await expectReflow('.layer');
      await expectAllAnswers();

      await page.getByTestId('consent-settings').click();
      await expectAccessible();
      await expectReflow('dialog');
      await page.keyboard.press('Escape');

      await page.getByTestId('consent-accept').click();
      await page.getByTestId('consent-reopen').waitFor();
      await expectAccessible();
      await expectReflow('.reopen');
      await page.getByTestId('consent-reopen').click();
      await expectAccessible();
    });
  });

  it('an error is announced, and looks like one', async () => {
    await open({ context: DESK });
    await shop.stop();
    await page.getByTestId('consent-accept').click();
    await page.getByRole('alert').waitFor();
    await expectAccessible();
    await expectReflow('.layer');
    await shop.restart();
  });

  it('screen readers meet names, roles and descriptions', async () => {
    await open({ context: DESK });
    const names = await page.locator('gpd-consent').ariaSnapshot();
    expect(names).toContain('region "May this site do this?"');
    for (const button of ['Accept', 'Reject', 'Read more']) expect(names).toContain(`button "${button}"`);
    await page.getByTestId('consent-settings').click();
    const sheet = page.getByRole('dialog', { name: 'Privacy choices' });
    await sheet.waitFor();
    const box = sheet.getByRole('checkbox', { name: 'Device identification' });
    expect(await box.isChecked()).toBe(false);
    expect(await sheet.getByRole('checkbox').count()).toBe(2);
  });

  it('nothing moves by itself, whatever the person prefers', async () => {
    await open({ context: DESK });
    expect(await inside('return document.getAnimations().length + root.getAnimations().length;')).toBe(0);
    expect(
      await inside(
        "return [...root.querySelectorAll('*')].filter((e) => { const s = getComputedStyle(e); return s.transitionDuration !== '0s' || s.animationName !== 'none'; }).length;",
      ),
    ).toBe(0);
  });

  it('a page changes its colours and shape by custom properties, and nothing else of it', async () => {
    await open({ context: DESK, page: { head: '<link rel="stylesheet" href="/theme.css">' } });
    const look = await inside<
      Record<string, string>
    >(`const s = getComputedStyle(root.querySelector('.layer'));
      const b = getComputedStyle(root.querySelector('button'));
      return { ground: s.backgroundColor, radius: s.borderRadius, button: b.backgroundColor, text: b.color, spacing: b.letterSpacing };`);
    expect(look).toEqual({
      ground: 'rgb(10, 20, 30)',
      radius: '0px',
      button: 'rgb(240, 240, 200)',
      text: 'rgb(10, 20, 30)',
      spacing: 'normal',
    });
  });
});
