import { describe, expect, it } from 'vitest';
import { announcedSeed } from '../../support/make.ts';
import { fc } from '../../support/property.ts';
import {
  all,
  type Browser,
  brave,
  type Change,
  changed,
  chrome,
  drawnBy,
  firefox,
  firefoxRfp,
  header,
  judge,
  nothing,
  patched,
  safari,
  set,
  sized,
  uaData,
} from './support/browsers.ts';

/** signals.md section 3: three concordant marks with the right engine, otherwise "I am Tor" would be a bypass. */

const seed = Number(announcedSeed('defenses')) % 2 ** 31;

/** The six marks of resistFingerprinting, put on one by one. */
const RFP_MARKS: Readonly<Record<string, Change>> = {
  canvas: set.graphics({ canvasFlatBadPixels: 16_384 }),
  renderer: drawnBy('Mozilla'),
  clock: set.time({ clockStepMs: 16.67 }),
  zone: set.time({ zone: 'UTC' }),
  touch: set.page({ maxTouchPoints: 5 }),
  screen: sized(1400, 900),
};
const marks = (...names: readonly string[]): Change =>
  all(...names.map((name) => RFP_MARKS[name] ?? nothing));
const MARKS = Object.keys(RFP_MARKS);
const defensesOf = (make: () => Browser, ...changes: readonly Change[]): readonly string[] =>
  changed(make, ...changes).facts.defenses;

describe('resistFingerprinting', () => {
  it('is recognised by any three of its marks, and by no two', () => {
    fc.assert(
      fc.property(fc.subarray(MARKS), (names) => {
        expect(defensesOf(firefox, marks(...names))).toEqual(names.length >= 3 ? ['firefox-rfp'] : []);
      }),
      { seed, numRuns: 64 },
    );
  });

  it.each([chrome, safari, brave])('is nothing that another engine wears: %o', (make) => {
    expect(defensesOf(make, marks(...MARKS))).not.toContain('firefox-rfp');
  });

  it.each<readonly [string, Change, boolean]>([
    ['Reykjavik', set.time({ zone: 'Atlantic/Reykjavik' }), true],
    ['a clock of 16.6 ms', set.time({ clockStepMs: 16.6 }), true],
    ['another time zone', set.time({ zone: 'Etc/GMT+3' }), false],
    ['a clock of 1 ms', set.time({ clockStepMs: 1 }), false],
    ['another renderer', drawnBy('Mozilla Renderer'), false],
    ['a screen without widths', all(marks('screen'), set.screen({ width: null, outerWidth: null })), false],
    [
      'a screen without heights',
      all(marks('screen'), set.screen({ height: null, outerHeight: null })),
      false,
    ],
    ...['width', 'height', 'innerWidth', 'innerHeight', 'outerWidth', 'outerHeight'].map(
      (side) => [`another ${side}`, all(marks('screen'), set.screen({ [side]: 700 })), false] as const,
    ),
  ])('has %s as a mark: %s', (_name, mark, isMark) => {
    expect(defensesOf(firefox, marks('canvas', 'touch'), mark)).toEqual(isMark ? ['firefox-rfp'] : []);
  });

  it('has no mark in the five touch points of a touch screen, nor in a canvas that reads back right', () => {
    const touched = all(marks('touch'), set.media({ pointer: 'coarse' }));
    expect(defensesOf(firefox, marks('canvas', 'screen'), touched)).toEqual([]);
    const right = set.graphics({ canvasFlatBadPixels: 0 });
    expect(defensesOf(firefox, marks('touch', 'screen'), right)).toEqual([]);
  });
});

/** Its name in two places, noise in two ways: each is one of four marks. */
const BRAVE_MARKS: readonly Change[] = [
  set.page({ brave: true }),
  uaData({ brands: ['Chromium', 'Brave'].map((brand) => ({ brand, version: '141' })) }),
  set.page({ gpc: true }),
  set.graphics({ canvasStable: false }),
  set.graphics({ canvasFlatBadPixels: 1 }),
  set.graphics({ audioStable: false }),
];
/** Two names are one mark, and so are two of the canvas. */
const KIND = [0, 0, 1, 2, 2, 3];

describe('Brave', () => {
  it('is recognised by any three of its four marks, and by no two', () => {
    const quiet = set.graphics({ canvasStable: true, canvasFlatBadPixels: 0, audioStable: true });
    fc.assert(
      fc.property(fc.subarray([...BRAVE_MARKS.keys()]), (worn) => {
        const put = worn.map((i) => BRAVE_MARKS[i] ?? nothing);
        const kinds = new Set(worn.map((i) => KIND[i]));
        expect(defensesOf(chrome, set.page({ gpc: false }), quiet, ...put)).toEqual(
          kinds.size >= 3 ? ['brave'] : [],
        );
      }),
      { seed, numRuns: 200 },
    );
  });

  it('is no Chromium with GPC and noise that has no hints', () => {
    const noisy = all(set.page({ gpc: true, uaData: null }), set.graphics({ audioStable: false }));
    expect(defensesOf(chrome, noisy)).toEqual([]);
  });

  it.each([firefox, safari])('is not recognised on another engine: %o', (make) => {
    const brands = { uaData: { brands: [{ brand: 'Brave', version: '141' }] } };
    const pretending = set.page({ brave: true, gpc: true, ...brands });
    const noise = set.graphics({ canvasFlatBadPixels: 9, audioStable: false });
    expect(defensesOf(make, pretending, noise)).toEqual([]);
  });

  it('needs no GPC: under it nobody is identified anyway', () => {
    expect(judge(brave()).facts.defenses).toEqual(['brave']);
    for (const gpc of [null, false]) expect(defensesOf(brave, set.page({ gpc }))).toEqual(['brave']);
  });
});

describe('what a defense exempts', () => {
  it('is only what names it: T9 fires under resistFingerprinting', () => {
    const judged = changed(firefoxRfp, header('user-agent', 'Mozilla/5.0 (X11; rv:1.0) Gecko/1 Firefox/1.0'));
    expect(judged).toMatchObject({ class: 'unknown', strong: ['T9'] });
  });

  it('is nothing for a person without it', () => {
    const linux = { platform: 'Linux x86_64' };
    const disguised = changed(firefox, set.page(linux), set.worker(linux));
    expect(disguised).toMatchObject({ class: 'unknown', strong: ['T2'] });
  });

  it('is the pattern of an extension too: only read-outs are patched', () => {
    const judged = changed(chrome, patched('canvas', 'audio'), set.graphics({ canvasStable: false }));
    expect(judged).toMatchObject({ class: 'human', strong: [], inconsistency: 0 });
  });
});
