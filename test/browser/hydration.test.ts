import { expect, it } from 'vitest';
import { KID } from '../support/constants.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { describeInChromium } from './support/chromium.ts';
import { useMyData } from './support/my-data.ts';

/**
 * A page that the server wrote and React takes over. The package of React for browsers is not among the dependencies, so the page does what
 * React does: it looks for a child that it does not know, gives up the whole page then (error 418), and marks each element that it took over.
 */
const HYDRATE = `addEventListener('load', () => setTimeout(() => {
  document.body['__reactContainer$x'] = {};
  setTimeout(() => {
    const host = document.querySelector('[data-gpd-my-data]');
    window.mismatches = host.childNodes.length;
    if (window.mismatches > 0) document.body.replaceChildren(document.createElement('main'));
    host['__reactFiber$x'] = {};
  }, 1000);
}));`;

const page = (script: string): string => `<!doctype html><html lang="en"><head><title>Shop</title>
  <script type="module" src="/v1/my-data.js"></script><script>${script}</script></head>
  <body><main><div data-gpd-my-data data-kid="${KID}"></div></main></body></html>`;

describeInChromium('browser/my-data on a page of React', () => {
  const at = useMyData();

  async function open(script: string): Promise<void> {
    await at.open();
    await at.page.route('**/own', (route) => route.fulfill({ contentType: 'text/html', body: page(script) }));
    await at.page.goto(`${at.base}/own`);
  }

  it('comes after the hydration, and stays', async () => {
    await open(HYDRATE);
    await at.page.getByTestId('look').waitFor();
    expect(await at.page.evaluate('window.mismatches')).toBe(0);
    expect(await at.page.getByTestId('look').count()).toBe(1);
    expect(at.problems).toEqual([]);
  });

  it('is there without React, and in an element that the page adds later', async () => {
    await open('');
    await at.page.getByTestId('look').waitFor();
    await at.page.evaluate(`document.querySelector('main').replaceChildren();
      document.querySelector('main').insertAdjacentHTML('beforeend', '<div data-gpd-my-data data-kid="${KID}"></div>')`);
    await expect.poll(() => at.page.getByTestId('look').count(), SEEN_WITHIN).toBe(1);
  });
});
