import type { Browser, Page } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { launch, type Visitor, visit } from './drivers.ts';
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

export function useBanner(...options: Parameters<typeof launch>): BannerSuite {
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
