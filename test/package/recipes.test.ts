import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeInChromium, launchChromium } from '../browser/support/chromium.ts';
import { type ShopServer, startShopServer } from '../browser/support/pasted.ts';
import { tempDir } from '../support/command.ts';
import { freePort } from '../support/ports.ts';
import { ANALYTICS, buildShop, packSdks, visitShop } from './shop.ts';

/** docs/recipes.md, pasted: each framework from npm's registry, built, started and driven under its policy. */

describeInChromium('package/recipes', () => {
  const packs = tempDir('packs');
  let url: string;
  let server: ShopServer;
  let browser: Browser;

  beforeAll(async () => {
    url = `http://localhost:${await freePort()}`;
    server = await startShopServer(url, ANALYTICS);
    packSdks(packs);
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser?.close();
    await server?.gpd.stop();
  });

  describe.each(['Next', 'Astro', 'Vite', 'SvelteKit', 'Nuxt'])('%s', (framework) => {
    let shop: ChildProcess;
    // A build of a framework takes a minute on a busy machine.
    beforeAll(async () => {
      shop = await buildShop(url, server, packs, 'recipes.md', framework).start();
    }, 600_000);
    afterAll(async () => {
      if (shop?.kill()) await once(shop, 'exit');
    });

    it('has a policy that allows no inline script', async () => {
      const policy = (await fetch(url)).headers.get('content-security-policy') ?? '';
      const directives = new Map(
        policy.split(/;\s*/).map((directive): [string, string] => {
          const [name = '', ...sources] = directive.split(' ');
          return [name, sources.join(' ')];
        }),
      );
      expect(directives.get('default-src')).toMatch(/^'(?:self|none)'$/);
      expect(directives.get('script-src') ?? "'self'").toMatch(
        /^(?:'self'|'nonce-[^']+'|'strict-dynamic'| )+$/,
      );
      expect(directives.get('connect-src')).toBe(`'self' http://localhost:${server.gpd.port}`);
      expect(policy).not.toMatch(/unsafe-(?:inline|eval)/);
    });

    it('renders what was agreed to, before any script and after each choice', async () => {
      const { page, messages, rendered } = await visitShop(browser, url);
      const sees = async (text: string, other: string): Promise<void> => {
        await page.getByText(text).waitFor();
        await expect.poll(rendered).toContain(text);
        expect(await rendered()).not.toContain(other);
      };
      await sees('Not counted.', 'You are counted.');
      await page.getByRole('button', { name: 'Accept' }).click();
      await sees('You are counted.', 'Not counted.');
      await page.reload();
      await sees('You are counted.', 'Not counted.');
      await page.getByRole('button', { name: 'Withdraw', exact: true }).click();
      await sees('Not counted.', 'You are counted.');
      await page.reload();
      await sees('Not counted.', 'You are counted.');
      expect(messages).toEqual([]);
      await page.context().close();
    });
  });
});
