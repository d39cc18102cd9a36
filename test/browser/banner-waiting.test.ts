import { expect, it, vi } from 'vitest';
import { SEEN_WITHIN } from '../support/expect.ts';
import { describeBanner } from './support/banner-suite.ts';
import { AGENT, ANALYTICS, NONCE } from './support/shop.ts';

/** Scripts and media wait for their purposes, and run or load late. */

const gated = (text: string): string =>
  `<script type="text/plain" data-purpose="${ANALYTICS}" nonce="${NONCE}">${text}</script>`;

describeBanner('what waits for a purpose', [], (at) => {
  async function open(body: string): Promise<void> {
    await at.enter();
    await at.page.goto(at.shop.page({ body }));
    await at.banner.waitFor('banner');
  }

  const inWait = 'gpd-consent-wait >>> [data-testid="consent-wait-';
  const frame = (purpose = ANALYTICS): string =>
    `<iframe id="film" width="300" height="200" data-purpose="${purpose}" data-src="/page.css"></iframe>`;
  const src = (): Promise<unknown> => at.page.evaluate("document.getElementById('film').getAttribute('src')");

  it('a frame: its place names the purpose, grants it alone, and is there again after a withdrawal', async () => {
    await open(frame());
    const accept = await at.page.waitForSelector(`${inWait}accept"]`, { visible: true });
    expect(await src()).toBeNull();
    const text = "document.querySelector('gpd-consent-wait').shadowRoot.textContent";
    expect(await at.page.evaluate(text)).toContain('Audience measurement');
    const box = "document.querySelector('gpd-consent-wait').getBoundingClientRect()";
    expect(await at.page.evaluate(`[${box}.width, ${box}.height >= 200]`)).toEqual([304, true]);
    await at.page.evaluate(
      "document.querySelector('gpd-consent-wait').shadowRoot.querySelector('button').click()",
    );
    expect((await at.banner.state()).granted).toEqual([]);
    await accept?.click();
    await vi.waitFor(async () => expect(await src()).toBe('/page.css'), SEEN_WITHIN);
    expect((await at.banner.state()).granted).toEqual([ANALYTICS]);
    expect(await at.page.$('gpd-consent-wait')).toBeNull();
    await at.page.evaluate('gpd.consent.withdraw()');
    await at.page.waitForSelector(`${inWait}settings"]`, { visible: true });
    expect(await src()).toBeNull();
    // The question would cover it.
    await at.banner.answer('reject');
    await (await at.page.$(`${inWait}settings"]`))?.click();
    await at.banner.waitFor('save');
    expect(await at.page.evaluate('window.violations')).toEqual([]);
  });

  it('an image and a film wait too, and a pixel has no place', async () => {
    const file = 'data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=';
    const attributes = `data-purpose="${AGENT}" data-src="${file}"`;
    await open(
      `<img ${attributes} alt="a map" width="200" height="100"><video ${attributes}></video><img ${attributes} alt="" width="1" height="1">`,
    );
    await vi.waitFor(async () => expect(await at.page.$$('gpd-consent-wait')).toHaveLength(2), SEEN_WITHIN);
    await at.banner.answer('accept');
    const sources =
      "[...document.querySelectorAll('img, video')].map((e) => e.getAttribute('src') === e.dataset.src)";
    expect(await at.page.evaluate(sources)).toEqual([true, true, true]);
    expect(await at.page.$('gpd-consent-wait')).toBeNull();
  });

  it('what the page adds later, after pushState too, runs without activate()', async () => {
    await open('<div id="view"></div>');
    await at.banner.answer('accept');
    const add = `{ history.pushState(null, '', '#next'); const script = document.createElement('script'); script.type = 'text/plain';
      script.nonce = '${NONCE}'; script.dataset.purpose = '${ANALYTICS}'; script.textContent = 'window.ran = (window.ran ?? 0) + 1';
      const part = document.createElement('section'); part.append(script);
      const film = document.createElement('iframe'); film.id = 'film'; film.dataset.purpose = '${ANALYTICS}'; film.dataset.src = '/page.css';
      part.append(film); document.getElementById('view').replaceChildren(part); }`;
    await at.page.evaluate(add);
    await at.page.waitForFunction('window.ran === 1');
    expect(await src()).toBe('/page.css');
    await at.page.evaluate('gpd.consent.activate(); gpd.consent.activate()');
    expect(await at.page.evaluate('window.ran')).toBe(1);
  });

  it('an inline document.write writes where its script is, and wipes nothing', async () => {
    await open(
      `<p id="before"></p>${gated(`document.write('<b id="written">x', '</b>'); document.writeln('<script nonce="${NONCE}">window.inner = 1<\\/script>');`)}<p id="after"></p>`,
    );
    await at.banner.answer('accept');
    const around = `(() => { const e = document.getElementById('written'); return [e?.previousElementSibling.localName,
      document.getElementById('before') !== null, document.getElementById('after') !== null, window.inner ?? 0]; })()`;
    expect(await at.page.evaluate(around)).toEqual(['script', true, true, 1]);
    expect(
      await at.page.evaluate("Object.hasOwn(document, 'write') || Object.hasOwn(window, 'addEventListener')"),
    ).toBe(false);
  });

  it('listeners for the load of the page are called, and those of other scripts are not', async () => {
    await open(
      gated(`window.called = []; document.addEventListener('DOMContentLoaded', () => called.push('document'));
        addEventListener('DOMContentLoaded', { handleEvent() { called.push('window'); } }); addEventListener('load', () => called.push('load'));
        document.addEventListener('load', () => called.push('never'));`),
    );
    await at.banner.answer('accept');
    await at.page.waitForFunction('window.called?.length === 3');
    expect(await at.page.evaluate('called')).toEqual(['document', 'window', 'load']);
  });
});
