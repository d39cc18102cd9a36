import { expect, it, vi } from 'vitest';
import { SEEN_WITHIN } from '../support/expect.ts';
import { describeBanner } from './support/banner-suite.ts';
import type { ShopPage } from './support/shop.ts';

/** Rules and layers of the page: the banner is seen and pressed. */

const COVER = '.cover { position: fixed; inset: 0; width: 100vw; height: 100vh; margin: 0; background: #c00;';
const TALL = 'main { min-height: 4000px }';

const RULES = {
  'a rule against a flash of unstyled content': ':not(:defined) { visibility: hidden }',
  'the same, and important': ':not(:defined) { display: none !important }',
  'rules for every element': '* { pointer-events: none; opacity: 0 !important; transform: scale(0) }',
  'rules for the host':
    'gpd-consent { all: unset !important; display: none !important; clip-path: inset(50%) }',
  'a root that is hidden until the page is ready': 'html { visibility: hidden; opacity: 0 }',
  'a root with a transform': `html { transform: translateX(0) } ${TALL}`,
  'a root that contains': `html { container-type: inline-size; contain: paint } ${TALL}`,
  'a bar with the highest z-index': `${COVER} z-index: 2147483647 }`,
} as const;

describeBanner('banner among the layers of its page', [], (at) => {
  const cover = '<div class="cover"></div>';

  async function open(css: string, options: ShopPage = {}): Promise<void> {
    // A page's own script may make a sheet; the policy forbids inline ones.
    await at.enter(`{ const sheet = new CSSStyleSheet(); sheet.replaceSync(${JSON.stringify(css)});
      document.adoptedStyleSheets = [sheet]; }`);
    await at.page.goto(at.shop.page(options));
    await at.banner.waitFor('banner');
  }

  /** The pointer meets it, not the page. */
  const isOnTop = (name: string): Promise<boolean> =>
    at.banner.inside(`const e = root.querySelector('[data-testid="consent-${name}"]'); const box = e.getBoundingClientRect();
      return root.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2) === e;`);

  const seesOnTop = (name: string): Promise<unknown> =>
    vi.waitFor(async () => expect(await isOnTop(name)).toBe(true), SEEN_WITHIN);

  it.each(Object.entries(RULES))('%s: asked, answered, and asked to change it', async (_what, css) => {
    await open(css, { body: css.includes('.cover') ? cover : '' });
    expect(await isOnTop('reject')).toBe(true);
    await at.banner.answer('accept');
    expect((await at.banner.state()).granted).toHaveLength(2);
    expect(await isOnTop('reopen')).toBe(true);
    await at.banner.press('reopen');
    await at.banner.press('reject-all');
    await at.banner.waitGone('save');
    expect((await at.banner.state()).granted).toEqual([]);
  });

  it('a popover that the page opens later is below it, and the keyboard stays where it was', async () => {
    await open(`${COVER} }`, { body: '<div class="cover" popover="manual"></div>' });
    await at.banner.inside("root.querySelector('[data-testid=consent-accept]').focus()");
    await at.page.evaluate("document.querySelector('.cover').showPopover()");
    await seesOnTop('accept');
    expect(await at.banner.focused()).toBe('consent-accept');
    await at.page.evaluate("for (const e of document.querySelectorAll('[popover]')) e.hidePopover()");
    await at.banner.answer('accept');
    expect((await at.banner.state()).granted).toHaveLength(2);
  });

  it.each(['stays', 'is taken away'])(
    'a modal dialog of the page: the banner is in it as long as it is open, also where it %s',
    async (end) => {
      await open(`${COVER} }`, { body: '<dialog class="cover"><p>Ten percent off.</p></dialog>' });
      await at.page.evaluate("document.querySelector('.cover').showModal()");
      await seesOnTop('settings');
      await at.banner.press('settings');
      await at.banner.press('close');
      await at.banner.answer('reject');
      await at.page.evaluate(
        end === 'stays'
          ? "document.querySelector('.cover').close()"
          : "document.querySelector('.cover').remove()",
      );
      await vi.waitFor(
        async () =>
          expect(await at.page.evaluate('document.body.previousElementSibling?.localName')).toBe(
            'gpd-consent',
          ),
        SEEN_WITHIN,
      );
      await at.banner.press('reopen');
      await at.banner.waitFor('save');
    },
  );

  it('an element that fills the screen: the question is in it, and the button that stays comes back after it', async () => {
    await open('', { body: '<div class="cover">a film</div>' });
    await at.page.evaluate(
      "document.getElementById('opener').addEventListener('keydown', () => document.querySelector('.cover').requestFullscreen())",
    );
    await at.page.focus('#opener');
    await at.page.keyboard.press('f');
    await at.page.waitForFunction('document.fullscreenElement !== null');
    await seesOnTop('accept');
    await at.banner.press('accept');
    await at.banner.waitGone('banner');
    expect(await at.page.evaluate("document.querySelector('.cover > gpd-consent')")).toBeNull();
    await at.page.evaluate('document.exitFullscreen()');
    await at.page.waitForFunction('document.fullscreenElement === null');
    await seesOnTop('reopen');
  });
});
