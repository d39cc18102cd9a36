import type { Browser, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { describeWithTool } from '../../support/tools.ts';
import { BROWSERS, type BrowserName, launch, missingBrowser, type Visitor, visit } from './drivers.ts';
import { type Banner, bannerOf, type Shop, startShop } from './shop.ts';

/** The suites of the banner share one shop and one browser; each test has its own visitor. */
export interface BannerSuite {
  shop: Shop;
  browser: Browser;
  visitor: Visitor;
  page: Page;
  banner: Banner;
  /** A new visitor's first tab. @param script runs before the page does */
  enter(script?: string): Promise<void>;
}

function useBanner(...options: Parameters<typeof launch>): BannerSuite {
  const at = {
    async enter(script) {
      at.visitor = await visit(at.browser);
      at.page = await at.visitor.tab(script);
      at.banner = bannerOf(at.page);
    },
  } as BannerSuite;
  beforeAll(async () => {
    [at.shop, at.browser] = await Promise.all([startShop(), launch(...options)]);
  });
  afterAll(async () => {
    await at.browser?.close();
    await at.shop?.close();
  });
  afterEach(async () => {
    await at.visitor?.leave();
    await at.shop?.restart();
  });
  return at;
}

type Options = Parameters<typeof launch> extends [BrowserName, ...infer Rest] ? Rest : never;

/** A suite of the banner, once in each browser. */
export function describeBanner(
  title: string,
  options: Options,
  suite: (at: BannerSuite, name: BrowserName) => void,
): void {
  for (const name of BROWSERS)
    describeWithTool(`browser/${title} in ${name}`, missingBrowser(name), () =>
      suite(useBanner(name, ...options), name),
    );
}
