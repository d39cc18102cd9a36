import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { KID, type Rig, startRig } from '../../bench/matrix/lib/rig.ts';
import { type Site, startSite } from '../../bench/matrix/lib/site.ts';
import { type IngestResponse, ingestResponseSchema } from '../../src/schema/responses.ts';
import { type ReadSignals, readSignals } from '../../src/schema/signals.ts';
import { tempDir } from '../support/command.ts';
import { CHROMIUM_ARGS, describeInChromium, findChromium } from './support/chromium.ts';
import { describeInFirefox, type Firefox, type Preferences, startFirefox } from './support/firefox.ts';

/**
 * These acts of a person on a real browser must not change the id (signals.md, section 4): a page that consents and
 * asks by itself, before a real gpd.
 */

interface Look {
  /** Null: the agent sent nothing, and `reason` says why. */
  readonly response: IngestResponse | null;
  readonly reason: string | null;
  readonly signals: ReadSignals['signals'] | null;
}

interface Looks {
  /** @param open goes to the address, which asks once */
  look(open: (url: string) => Promise<unknown>): Promise<Look>;
  close(): Promise<void>;
}

const REPORT_MS = 45_000;

function signalsOf(site: Site, rig: Rig): Look['signals'] {
  const exchange = site.lastExchange();
  const opened = exchange && rig.open(JSON.parse(exchange.body));
  if (!opened) throw new Error('the bundle does not open');
  return readSignals((JSON.parse(opened.toString('utf8')) as { signals: Record<string, unknown> }).signals)
    .signals;
}

async function startLooks(): Promise<Looks> {
  const site = await startSite();
  const rig = await startRig(site.origin);
  site.proxyTo(rig.port);
  let count = 0;
  return {
    async look(open) {
      count += 1;
      site.forgetExchange();
      const report = site.reportOf(`look-${count}`, REPORT_MS);
      report.catch(() => {});
      await open(`${site.origin}/?run=look-${count}&kid=${KID}`);
      const answer = (await report).gpd as { reason?: string; response?: unknown };
      if (answer.response === undefined)
        return { response: null, reason: answer.reason ?? null, signals: null };
      return {
        response: ingestResponseSchema.parse(answer.response),
        reason: null,
        signals: signalsOf(site, rig),
      };
    },
    async close() {
      await rig.stop();
      await site.close();
    },
  };
}

/** A first look, of a machine without graphics hardware, and those that must say the same. */
function useFirst(look: () => Promise<Look>) {
  const at = {} as { looks: Looks; first: Look };
  beforeAll(async () => {
    at.looks = await startLooks();
    at.first = await look();
    expect(at.first.response).toMatchObject({ reason: 'ok', confidence: 0.6, needsAttestation: true });
  });
  afterAll(() => at.looks?.close());
  const expectSame = ({ response }: Look): void => {
    expect(response?.visitorId).toMatch(/^[\w-]{22}$/);
    expect(response).toMatchObject({ visitorId: at.first.response?.visitorId, confidence: 0.99 });
  };
  return { at, expectSame };
}

/** The level is a power of 1.2. */
const zoomTo = (factor: number): object => ({
  partition: { default_zoom_level: { x: Math.log(factor) / Math.log(1.2) } },
});

describeInChromium('browser/same-id-chromium', () => {
  const profile = tempDir('chromium');

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
      const look = await at.looks.look((url) => page.goto(url));
      const storedKeys = await page.evaluate<string[]>('Object.keys(localStorage)');
      await page.evaluate(`localStorage.setItem(${JSON.stringify(flags.join(' ') || 'plain')}, '1')`);
      return { ...look, kept: storedKeys };
    } finally {
      await context.close();
    }
  }

  const { at, expectSame } = useFirst(() => look());

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
    expect(resized.signals?.screen?.outerWidth).toBeLessThan(at.first.signals?.screen?.outerWidth ?? 0);
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
      expect(scaled.signals?.screen?.width).toBeLessThan(at.first.signals?.screen?.width ?? 0);
      // With the screen's own pixels the id would be another one all the same.
      expect(scaled.signals?.graphics?.canvasHash).not.toBe(at.first.signals?.graphics?.canvasHash);
      expect(scaled.response?.visitorId).not.toBe(at.first.response?.visitorId);
      expectSame(await look());
    },
  );
});

/** In private windows it is on by default. */
const NO_GPC = { 'privacy.globalprivacycontrol.pbmode.enabled': false };
const RFP = { 'privacy.resistFingerprinting': true };

interface Doing {
  readonly directory?: string;
  readonly preferences?: Preferences;
  /** Before the page is opened. */
  readonly first?: (firefox: Firefox) => Promise<unknown>;
}

async function openPrivateWindow({ command }: Firefox): Promise<void> {
  const opened = await command('WebDriver:NewWindow', { type: 'window', private: true, focus: true });
  await command('WebDriver:SwitchToWindow', { handle: (opened as { handle: string }).handle });
}

describeInFirefox('browser/same-id-firefox', () => {
  const profile = tempDir('firefox');

  async function look({
    directory = tempDir('firefox'),
    preferences,
    first: act,
  }: Doing = {}): Promise<Look> {
    const firefox = await startFirefox(directory, preferences);
    try {
      await act?.(firefox);
      return await at.looks.look((url) => firefox.command('WebDriver:Navigate', { url }));
    } finally {
      await firefox.quit();
    }
  }

  const { at, expectSame } = useFirst(() => look({ directory: profile }));

  it('keeps the id over a restart', async () => {
    expectSame(await look({ directory: profile }));
  });

  it('keeps the id in another profile: nothing is stored in the browser', async () => {
    expectSame(await look());
  });

  it('identifies nobody in a private window, which asks for that by Global Privacy Control', async () => {
    expect(await look({ first: openPrivateWindow })).toMatchObject({ response: null, reason: 'gpc' });
  });

  it('keeps the id in a private window without Global Privacy Control, which tells other cores', async () => {
    const hidden = await look({ preferences: NO_GPC, first: openPrivateWindow });
    const cores = ({ signals }: Look) => signals?.page?.hardwareConcurrency;
    // Firefox 145 and later: four there, or eight for those that have as many; the id takes the same steps.
    expect([4, 8]).toContain(cores(hidden));
    expect((cores(at.first) ?? 0) <= 4).toBe(cores(hidden) === 4);
    expectSame(hidden);
  });

  it('keeps the id in a window of another size', async () => {
    const resized = await look({
      first: ({ command }) => command('WebDriver:SetWindowRect', { width: 700, height: 500 }),
    });
    expect(resized.signals?.screen?.outerWidth).toBe(700);
    expectSame(resized);
  });

  it.each([0.5, 1.1, 1.5, 2])(
    'keeps the id at a zoom of %d, although the screen is told in zoomed pixels',
    async (factor) => {
      const zoomed = await look({
        first: async ({ command, inWindow }) => {
          // The zoom is kept by site: it has to be open.
          await at.looks.look((url) => command('WebDriver:Navigate', { url }));
          await inWindow(`window.FullZoom.setZoom(${factor});`);
        },
      });
      expect(zoomed.signals?.screen?.dpr).toBeCloseTo(factor, 1);
      expect(zoomed.signals?.screen?.width).not.toBe(at.first.signals?.screen?.width);
      expectSame(zoomed);
    },
  );

  it('has one id for all windows under resistFingerprinting, which says that it may be shared', async () => {
    const open = await look({ preferences: RFP });
    const hidden = await look({ preferences: { ...RFP, ...NO_GPC }, first: openPrivateWindow });
    expect(open.response).toMatchObject({ confidence: 0.6, needsAttestation: true });
    expect(open.response?.visitorId).not.toBe(at.first.response?.visitorId);
    expect(hidden.response).toMatchObject({ visitorId: open.response?.visitorId, confidence: 0.99 });
  });
});
