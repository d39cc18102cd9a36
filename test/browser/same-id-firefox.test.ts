import { afterAll, beforeAll, expect, it } from 'vitest';
import { tempDir } from '../support/command.ts';
import { describeInFirefox, type Firefox, type Preferences, startFirefox } from './support/firefox.ts';
import { type Look, type Looks, startLooks } from './support/looks.ts';

/** These acts of a person on real Firefox must not change the id (signals.md, section 4). */

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
  let looks: Looks;
  let first: Look;
  const profile = tempDir('firefox');

  async function look({
    directory = tempDir('firefox'),
    preferences,
    first: act,
  }: Doing = {}): Promise<Look> {
    const firefox = await startFirefox(directory, preferences);
    try {
      await act?.(firefox);
      return await looks.look((url) => firefox.command('WebDriver:Navigate', { url }));
    } finally {
      await firefox.quit();
    }
  }

  beforeAll(async () => {
    looks = await startLooks();
    first = await look({ directory: profile });
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
    expect((cores(first) ?? 0) <= 4).toBe(cores(hidden) === 4);
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
          await looks.look((url) => command('WebDriver:Navigate', { url }));
          await inWindow(`window.FullZoom.setZoom(${factor});`);
        },
      });
      expect(zoomed.signals?.screen?.dpr).toBeCloseTo(factor, 1);
      expect(zoomed.signals?.screen?.width).not.toBe(first.signals?.screen?.width);
      expectSame(zoomed);
    },
  );

  it('has one id for all windows under resistFingerprinting, which says that it may be shared', async () => {
    const open = await look({ preferences: RFP });
    const hidden = await look({ preferences: { ...RFP, ...NO_GPC }, first: openPrivateWindow });
    expect(open.response).toMatchObject({ confidence: 0.6, needsAttestation: true });
    expect(open.response?.visitorId).not.toBe(first.response?.visitorId);
    expect(hidden.response).toMatchObject({ visitorId: open.response?.visitorId, confidence: 0.99 });
  });
});
