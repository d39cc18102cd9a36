import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { tempDir } from '../support/command.ts';
import { CHROMIUM_ARGS, describeInChromium, findChromium } from './support/chromium.ts';
import { type Look, type Looks, startLooks } from './support/looks.ts';

/** These acts of a person on real Chromium must not change the id (signals.md, section 4). */

/** The level is a power of 1.2. */
const zoomTo = (factor: number): object => ({
  partition: { default_zoom_level: { x: Math.log(factor) / Math.log(1.2) } },
});

describeInChromium('browser/same-id-chromium', () => {
  let looks: Looks;
  let profile: string;
  let first: Look;

  /** Starts the browser, opens the page and quits. @param kept what earlier looks of the profile left behind */
  async function look(
    flags: readonly string[] = [],
    directory = profile,
  ): Promise<Look & { kept: string[] }> {
    const context = await chromium.launchPersistentContext(directory, {
      executablePath: findChromium() ?? '',
      headless: true,
      args: [...CHROMIUM_ARGS, ...flags],
      viewport: null,
    });
    try {
      const page = context.pages()[0] ?? (await context.newPage());
      const look = await looks.look((url) => page.goto(url));
      const storedKeys = await page.evaluate<string[]>('Object.keys(localStorage)');
      await page.evaluate(`localStorage.setItem(${JSON.stringify(flags.join(' ') || 'plain')}, '1')`);
      return { ...look, kept: storedKeys };
    } finally {
      await context.close();
    }
  }

  beforeAll(async () => {
    looks = await startLooks();
    profile = tempDir('chromium');
    first = await look();
  });
  afterAll(() => looks?.close());

  const expectSame = ({ response }: Look): void => {
    expect(response?.visitorId).toMatch(/^[\w-]{22}$/);
    expect(response).toMatchObject({ visitorId: first.response?.visitorId, confidence: 0.99 });
  };

  it('is a first look, of a machine without graphics hardware', () => {
    expect(first.response).toMatchObject({ reason: 'ok', confidence: 0.6, needsAttestation: true });
  });

  it('keeps the id over a restart', async () => {
    expectSame(await look());
  });

  it('keeps the id in another profile: nothing is stored in the browser', async () => {
    expectSame(await look([], tempDir('chromium')));
  });

  it('keeps the id in a private window, which neither sees nor leaves what the profile stores', async () => {
    const hidden = await look(['--incognito']);
    expectSame(hidden);
    expect(hidden.kept).toEqual([]);
    expect((await look()).kept).toEqual(['plain']);
  });

  it('keeps the id in a window of another size', async () => {
    const resized = await look(['--window-size=500,400']);
    expect(resized.signals?.screen?.outerWidth).toBeLessThan(first.signals?.screen?.outerWidth ?? 0);
    expectSame(resized);
  });

  it.each([0.5, 1.5, 3])('keeps the id at a zoom of %d', async (factor) => {
    const directory = tempDir('chromium');
    mkdirSync(join(directory, 'Default'));
    writeFileSync(join(directory, 'Default', 'Preferences'), JSON.stringify(zoomTo(factor)));
    const zoomed = await look([], directory);
    expect(zoomed.signals?.screen?.dpr).toBeCloseTo(factor, 1);
    expectSame(zoomed);
  });

  it.each([1.25, 2])(
    'does not keep it at a display scale of %d, which draws text otherwise',
    async (scale) => {
      const scaled = await look([`--force-device-scale-factor=${scale}`]);
      expect(scaled.signals?.screen?.dpr).toBe(scale);
      expect(scaled.signals?.screen?.width).toBeLessThan(first.signals?.screen?.width ?? 0);
      // With the screen's own pixels the id would be another one all the same.
      expect(scaled.signals?.graphics?.canvasHash).not.toBe(first.signals?.graphics?.canvasHash);
      expect(scaled.response?.visitorId).not.toBe(first.response?.visitorId);
      expectSame(await look());
    },
  );
});
