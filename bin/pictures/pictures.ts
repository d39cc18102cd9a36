import type { Page } from 'playwright-core';

/** The pictures of docs/images that `npm run pictures` draws, each in the light and in the dark. */

export interface Picture {
  readonly name: string;
  /** A member of the demo's staff; none for a page of the shop or of a person. */
  readonly account?: 'rosa' | 'dora';
  readonly width?: number;
  readonly height?: number;
  /** Opens the page at the demo's address, and acts until there is something to see. */
  readonly show: (page: Page, base: string) => Promise<unknown>;
}

async function agree(page: Page, base: string): Promise<void> {
  await page.goto(`${base}/demo`);
  await page.getByTestId('consent-accept').click();
  await page.locator('[data-step="verdict"][data-done]').waitFor();
}

const open =
  (path: string) =>
  (page: Page, base: string): Promise<unknown> =>
    page.goto(`${base}/console/${path}`);

export const PICTURES: readonly Picture[] = [
  {
    name: 'demo-banner',
    show: async (page, base) => {
      await page.goto(`${base}/demo`);
      await page.getByTestId('consent-accept').waitFor();
    },
  },
  {
    name: 'demo-verdict',
    show: async (page, base) => {
      await agree(page, base);
      const rule = page.locator('[data-part="rules"] li', { hasText: 'A1 ·' });
      await rule.waitFor();
      await page.locator('[data-part="verdict"]').evaluate((part) => part.scrollIntoView());
    },
  },
  {
    name: 'my-data',
    show: async (page, base) => {
      await agree(page, base);
      await page.getByTestId('my-data').click();
      await page.getByTestId('verdict').waitFor();
    },
  },
  { name: 'console-queue', account: 'rosa', show: open('queue') },
  { name: 'console-queue-narrow', account: 'rosa', width: 360, height: 780, show: open('queue') },
  {
    name: 'console-case',
    account: 'rosa',
    show: async (page, base) => {
      await page.goto(`${base}/console/queue`);
      await page.locator('main a[href^="/console/contests/"]').first().click();
      await page.getByRole('button', { name: 'Claim' }).click();
      await page.getByLabel('Your reason, for the person').waitFor();
    },
  },
  { name: 'console-overview', account: 'dora', show: open('overview') },
  { name: 'console-purposes', account: 'dora', show: open('terms') },
];

export const THEMES = ['light', 'dark'] as const;

export const fileOf = ({ name }: Picture, theme: (typeof THEMES)[number]): string => `${name}-${theme}.png`;
