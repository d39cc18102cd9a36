import { describe, expect, it } from 'vitest';
import { announcedSeed } from '../../support/make.ts';
import { fc } from '../../support/property.ts';
import {
  type Browser,
  brave,
  changed,
  chrome,
  firefox,
  firefoxRfp,
  judge,
  safari,
} from './support/browsers.ts';
import { all, type Change, drawnBy, header, nothing, patched, setFields, uaData } from './support/changes.ts';

/** signals.md section 3: three concordant marks with the right engine, otherwise "I am Tor" would be a bypass. */

const seed = Number(announcedSeed('defenses')) % 2 ** 31;

/** The six marks of resistFingerprinting, put on one by one. */
const RFP_MARKS: Readonly<Record<string, Change>> = {
  canvas: setFields('graphics', { canvasFlatBadPixels: 16_384 }),
  renderer: drawnBy('Mozilla'),
  clock: setFields('time', { clockStepMs: 16.67 }),
  zone: setFields('time', { zone: 'UTC' }),
  touch: setFields('page', { maxTouchPoints: 5 }),
  screen: setFields('screen', {
    width: 1400,
    height: 900,
    innerWidth: 1400,
    innerHeight: 900,
    outerWidth: 1400,
    outerHeight: 900,
  }),
};
const marks = (...names: readonly string[]): Change =>
  all(...names.map((name) => RFP_MARKS[name] ?? nothing));
const MARKS = Object.keys(RFP_MARKS);

function wearing(make: () => Browser, names: readonly string[]): readonly string[] {
  return changed(make, marks(...names)).facts.defenses;
}

describe('resistFingerprinting', () => {
  it('is recognised by any three of its marks, and by no two', () => {
    fc.assert(
      fc.property(fc.subarray(MARKS), (names) => {
        expect(wearing(firefox, names)).toEqual(names.length >= 3 ? ['firefox-rfp'] : []);
      }),
      { seed, numRuns: 64 },
    );
  });

  it.each<readonly [string, () => Browser]>([
    ['Chrome', chrome],
    ['Safari', safari],
    ['Brave', brave],
  ])('does not include %s, whatever marks it wears', (_name, make) => {
    expect(wearing(make, MARKS)).not.toContain('firefox-rfp');
  });

  it.each<readonly [string, Change]>([
    ['Reykjavik', setFields('time', { zone: 'Atlantic/Reykjavik' })],
    ['a clock of 16.6 ms', setFields('time', { clockStepMs: 16.6 })],
  ])('has %s as a mark', (_name, mark) => {
    const two = marks('canvas', 'touch');
    expect(changed(firefox, two).facts.defenses).toEqual([]);
    expect(changed(firefox, all(two, mark)).facts.defenses).toEqual(['firefox-rfp']);
  });

  it.each<readonly [string, Change]>([
    ['another time zone', setFields('time', { zone: 'Etc/GMT+3' })],
    ['a clock of 1 ms', setFields('time', { clockStepMs: 1 })],
    [
      'five touch points of a touch screen',
      all(setFields('page', { maxTouchPoints: 5 }), setFields('media', { pointer: 'coarse' })),
    ],
    ['another renderer', drawnBy('Mozilla Renderer')],
    ['a canvas that reads back right', setFields('graphics', { canvasFlatBadPixels: 0 })],
  ])('has no mark in %s', (_name, change) => {
    const judged = changed(firefox, all(marks('canvas', 'screen'), change));
    expect(judged.facts.defenses).toEqual([]);
  });
});

describe('the screen of resistFingerprinting', () => {
  const two = marks('canvas', 'touch');
  const SIDES = ['width', 'height', 'innerWidth', 'innerHeight', 'outerWidth', 'outerHeight'];

  it.each(SIDES)('is one size: not where %s differs', (side) => {
    const odd = all(two, marks('screen'), setFields('screen', { [side]: 700 }));
    expect(changed(firefox, odd).facts.defenses).toEqual([]);
  });

  it.each([
    ['widths', { width: null, innerWidth: null, outerWidth: null }],
    ['heights', { height: null, innerHeight: null, outerHeight: null }],
  ])('is not recognised without %s', (_name, sizes) => {
    const untold = all(two, marks('screen'), setFields('screen', sizes));
    expect(changed(firefox, untold).facts.defenses).toEqual([]);
  });
});

/** Its name in two places, noise in two ways: each is one of four marks. */
const BRAVE_MARKS: readonly (readonly [string, Change])[] = [
  ['its own mark', setFields('page', { brave: true })],
  [
    'its brand',
    uaData({
      brands: [
        { brand: 'Chromium', version: '141' },
        { brand: 'Brave', version: '141' },
      ],
    }),
  ],
  ['GPC', setFields('page', { gpc: true })],
  ['an unstable canvas', setFields('graphics', { canvasStable: false })],
  ['a canvas that reads back wrong', setFields('graphics', { canvasFlatBadPixels: 1 })],
  ['unstable audio', setFields('graphics', { audioStable: false })],
];
/** Two names are one mark, and so are two of the canvas. */
const KIND = [0, 0, 1, 2, 2, 3];

describe('Brave', () => {
  it('is recognised by any three of its four marks, and by no two', () => {
    const plain = all(
      setFields('page', { gpc: false }),
      setFields('graphics', { canvasStable: true, canvasFlatBadPixels: 0, audioStable: true }),
    );
    fc.assert(
      fc.property(fc.subarray([...BRAVE_MARKS.keys()]), (worn) => {
        const { facts } = changed(chrome, all(plain, ...worn.map((i) => BRAVE_MARKS[i]?.[1] ?? nothing)));
        const kinds = new Set(worn.map((i) => KIND[i]));
        expect(facts.defenses).toEqual(kinds.size >= 3 ? ['brave'] : []);
      }),
      { seed, numRuns: 200 },
    );
  });

  it.each<readonly [string, Change]>([
    ['has no hints', setFields('page', { uaData: null })],
    ['has other brands', uaData({ brands: [{ brand: 'Chromium', version: '141' }] })],
  ])('is not a Chromium with GPC and noise that %s', (_name, change) => {
    const noisy = all(setFields('page', { gpc: true }), setFields('graphics', { audioStable: false }));
    expect(changed(chrome, all(noisy, change)).facts.defenses).toEqual([]);
  });

  it('is recognised, with Chromium under it', () => {
    expect(judge(brave()).facts.defenses).toEqual(['brave']);
  });

  it('is not recognised by its name alone', () => {
    const named = changed(
      brave,
      setFields('graphics', {
        canvasFlatBadPixels: 0,
        canvasStable: true,
        audioStable: true,
      }),
    );
    expect(named.facts.defenses).toEqual([]);
  });

  it('is not recognised by its noise alone', () => {
    const noisy = changed(
      chrome,
      setFields('graphics', {
        canvasFlatBadPixels: 9,
        canvasStable: false,
        audioStable: false,
      }),
    );
    expect(noisy.facts.defenses).toEqual([]);
  });

  it.each<readonly [string, () => Browser]>([
    ['Firefox', firefox],
    ['Safari', safari],
  ])('is not recognised on the engine of %s', (_name, make) => {
    const pretending = changed(make, ({ signals }) => {
      Object.assign(signals.page, {
        brave: true,
        gpc: true,
        uaData: { brands: [{ brand: 'Brave', version: '141' }] },
      });
      Object.assign(signals.graphics, { canvasFlatBadPixels: 9, audioStable: false });
    });
    expect(pretending.facts.defenses).toEqual([]);
  });

  it('needs no GPC: under it nobody is identified anyway', () => {
    for (const gpc of [null, false]) {
      expect(changed(brave, setFields('page', { gpc: gpc })).facts.defenses).toEqual(['brave']);
    }
  });
});

describe('what a defense exempts', () => {
  it('is only what names it: T9 fires under resistFingerprinting', () => {
    const judged = changed(firefoxRfp, header('user-agent', 'Mozilla/5.0 (X11; rv:1.0) Gecko/1 Firefox/1.0'));
    expect(judged).toMatchObject({ class: 'unknown', strong: ['T9'] });
  });

  it('is nothing for a person without it', () => {
    const linux = { platform: 'Linux x86_64' };
    const disguised = changed(firefox, all(setFields('page', linux), setFields('worker', linux)));
    expect(disguised).toMatchObject({ class: 'unknown', strong: ['T2'] });
  });

  it('an extension has its own pattern: only read-outs are patched', () => {
    const judged = changed(
      chrome,
      all(patched('canvas', 'audio', 'webgl'), setFields('graphics', { canvasStable: false })),
    );
    expect(judged).toMatchObject({ class: 'human', strong: [], inconsistency: 0 });
  });
});
