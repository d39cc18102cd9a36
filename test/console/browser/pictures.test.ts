import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { describeInChromium, launchShell } from '../../browser/support/chromium.ts';
import { type Demo, startDemo } from '../../browser/support/demo.ts';
import { KID } from '../../support/constants.ts';
import { desktopChrome } from '../../support/samples.ts';
import { type Console, startConsole } from '../support/console.ts';
import { change } from '../support/data.ts';

/**
 * Checks the colours of the four classes on every page that names them, in light and dark. SHOTS=DIR
 * saves a picture of every page of the console and of the demo, for a review and for docs/images.
 */

const SHOTS = process.env['SHOTS'];
const LOOKS: Readonly<Record<string, BrowserContextOptions>> = {
  light: { colorScheme: 'light', viewport: { width: 1440, height: 900 } },
  dark: { colorScheme: 'dark', viewport: { width: 1440, height: 900 } },
  narrow: { colorScheme: 'light', viewport: { width: 360, height: 740 } },
};
const PAGES = [
  'queue',
  'queue?state=resolved',
  'overview',
  'subjects',
  'receipts',
  'holds',
  'audit',
  'ledger?seq=0',
  'keys',
  'terms',
  'sessions',
  'help',
  'nothing',
];
const CLASSES = ['human', 'declared_agent', 'undeclared_automation', 'unknown'];

/**
 * Runs in the page: lists elements of a class whose colour
 * differs from tokens.css or is inherited from the text.
 */
const OFF_COLOUR = `(() => {
  const probe = document.createElement('span');
  document.body.append(probe);
  const off = [];
  for (const one of document.querySelectorAll('.mark[data-class], [data-class] .chart-bar, .row[data-class] rect')) {
    const name = one.closest('[data-class]').dataset.class;
    probe.style.setProperty('color', 'var(--class-' + name.replaceAll('_', '-') + ')');
    const wanted = getComputedStyle(probe).color;
    const style = getComputedStyle(one);
    const got = one instanceof SVGElement ? (style.fill === 'none' ? style.stroke : style.fill) : style.color;
    if (got !== wanted) off.push(name + ': ' + got + ' in place of ' + wanted);
  }
  probe.remove();
  return { off, names: [...new Set([...document.querySelectorAll('.mark[data-class]')].map((one) => one.dataset.class))] };
})()`;

async function stocked(): Promise<Console> {
  const site = await startConsole();
  const people = [
    ['I type with one switch and a stick. I have been your customer for years.', 'phone-1'],
    ['I was only reading the page about returns when I was asked to leave.', 'phone-2'],
    ['A screen reader reads your shop to me; perhaps that looked odd.', 'laptop-1'],
    ['My browser blocks a lot, that is all.', 'laptop-2'],
  ] as const;
  for (const [statement, device] of people) {
    const signals = device.startsWith('laptop') ? desktopChrome(device) : undefined;
    for (let i = 0; i < 3; i += 1) await site.decide(device, signals);
    const { requestId, visitorId } = await site.decide(device, signals);
    await site.contest(requestId, visitorId, statement);
  }
  const now = Math.floor(Date.now() / HOUR) * HOUR;
  const rows = Array.from({ length: 24 }, (_, i) =>
    CLASSES.map((name, k) => {
      const n = Math.round((k === 0 ? 420 : 160 / k) * (1 + Math.sin((i + k) / 4)));
      return { kid: KID, kind: 'verdict', hour: now - i * HOUR, name, n };
    }),
  ).flat();
  const consent = Array.from({ length: 14 }, (_, i) =>
    ['granted', 'withdrawn', 'denied', 'gpc-opt-out'].map((name, k) => {
      const hour = Math.floor(now / DAY) * DAY - i * DAY;
      return {
        kid: KID,
        kind: 'consent',
        hour,
        name,
        n: Math.round((k === 0 ? 240 : 90 / k) * (1.2 + Math.cos(i + k))),
      };
    }),
  ).flat();
  await change(site, async (tx) => {
    await tx('tallies').where({ kid: KID }).delete();
    await tx('tallies').insert(rows.filter(({ n }) => n > 0));
    await tx('tallies').insert(consent.filter(({ n }) => n > 0));
    await tx('rule_reviews').insert([
      { kid: KID, rule: 'A1', upheld: 41, overturned: 3, confirmed: 212, mistaken: 4 },
      { kid: KID, rule: 'T9', upheld: 6, overturned: 9, confirmed: 0, mistaken: 21 },
      { kid: KID, rule: 'W4', upheld: 12, overturned: 10, confirmed: 0, mistaken: 0 },
    ]);
    const [first, second] = (await tx('contests').orderBy('contest_id').pluck('contest_id')) as string[];
    await tx('contests')
      .where({ contest_id: first })
      .update({ due_at: Date.now() + 30 * HOUR });
    await tx('contests')
      .where({ contest_id: second })
      .update({ due_at: Date.now() - 2 * DAY });
  });
  await site.gpd.json(['keys', 'rotate', KID]);
  return site;
}

describeInChromium('the looks of the console', () => {
  let site: Console;
  let browser: Browser;
  beforeAll(async () => {
    [site, browser] = await Promise.all([stocked(), launchShell()]);
  });
  afterAll(async () => {
    await browser?.close();
    await site?.stop();
  });

  async function enter(options: BrowserContextOptions): Promise<Page> {
    const page = await (await browser.newContext(options)).newPage();
    await page.goto(`${site.url}/console`);
    await page.fill('input[name="login"]', 'dora');
    await page.fill('input[name="password"]', 'x');
    await page.click('button[type="submit"]');
    await page.waitForLoadState();
    if (page.url().startsWith(site.idp.issuer)) await page.click('button[type="submit"]');
    await page.waitForURL(/\/console\/queue/);
    return page;
  }

  it.each(Object.entries(LOOKS))(
    '%s: every class has its own colour',
    async (look, options) => {
      const page = await enter(options);
      const shownClasses = new Set<string>();
      const keep = async (name: string): Promise<void> => {
        await page.waitForLoadState(SHOTS ? 'networkidle' : 'load');
        const { off, names } = (await page.evaluate(OFF_COLOUR)) as { off: string[]; names: string[] };
        expect({ name, off }).toEqual({ name, off: [] });
        for (const one of names) shownClasses.add(one);
        if (SHOTS)
          await page.screenshot({ path: join(SHOTS, `console-${name}-${look}.png`), fullPage: true });
      };
      for (const path of PAGES) {
        await page.goto(`${site.url}/console/${path}`);
        // Browsers paint a frame of another origin only once it is visible.
        if (path === 'terms') await page.locator('iframe').scrollIntoViewIfNeeded();
        await keep(path.replace(/\W+/g, '-'));
      }
      await page.goto(`${site.url}/console/queue`);
      await page.locator('[data-open]').first().click();
      await keep('case');
      await page.goto(`${site.url}/console/subjects`);
      const [request] = (await rowsOf(site)) as string[];
      await page.getByLabel('By', { exact: true }).selectOption('request');
      await page.getByLabel('Id', { exact: true }).fill(request ?? '');
      await page.getByRole('button', { name: 'Find' }).click();
      await keep('subject');
      await page.getByText('Place a hold').first().click();
      await keep('subject-hold');
      await page.getByRole('button', { name: 'Plan an erasure' }).click();
      await keep('erase');
      await page.goto(`${site.url}/console/banner`);
      await keep('banner');
      expect([...shownClasses].sort()).toEqual([...CLASSES].sort());
      await page.context().close();
    },
    120_000,
  );
});

async function rowsOf(site: Console): Promise<string[]> {
  let found: string[] = [];
  await change(site, async (tx) => {
    found = (await tx('contests').orderBy('contest_id').pluck('request_id')) as string[];
  });
  return found;
}

describeInChromium('the looks of the demo', () => {
  let demo: Demo;
  let browser: Browser;
  beforeAll(async () => {
    [demo, browser] = await Promise.all([startDemo(), launchShell()]);
  });
  afterAll(async () => {
    await browser?.close();
    await demo?.stop();
  });

  it.each(Object.entries(LOOKS))('%s: the verdict has the colour of its class', async (look, options) => {
    const page = await (await browser.newContext(options)).newPage();
    await page.goto(demo.shop);
    await page.getByTestId('consent-accept').waitFor();
    if (SHOTS) await page.screenshot({ path: join(SHOTS, `demo-asking-${look}.png`), fullPage: true });
    await page.getByTestId('consent-accept').click();
    await page.getByTestId('result-reason').waitFor();
    await page.waitForLoadState('networkidle');
    const tones = (await page.evaluate(`(() => {
      const verdict = document.querySelector('[data-part="verdict"]');
      const root = getComputedStyle(document.documentElement);
      const name = verdict.dataset.class;
      return [name, getComputedStyle(verdict).getPropertyValue('--tone').trim(), root.getPropertyValue('--class-' + name.replaceAll('_', '-')).trim()];
    })()`)) as string[];
    expect(CLASSES).toContain(tones[0]);
    expect(tones[1]).not.toBe('');
    expect(tones[1]).toBe(tones[2]);
    if (SHOTS) await page.screenshot({ path: join(SHOTS, `demo-${look}.png`), fullPage: true });
    await page.context().close();
  });
});
