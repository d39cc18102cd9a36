import { describe, expect, it } from 'vitest';
import { type OsFamily, osFamily, readAgent } from '../../../src/ingest/verdict/facts.ts';
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
  put,
  safari,
  sized,
  uaData,
} from './support/browsers.ts';

/** signals.md section 3: three concordant marks with the right engine, otherwise "I am Tor" would be a bypass. */

const seed = Number(announcedSeed('defenses')) % 2 ** 31;

/** The six marks of resistFingerprinting, put on one by one. */
const RFP_MARKS: Readonly<Record<string, Change>> = {
  canvas: put.graphics({ canvasFlatBadPixels: 16_384 }),
  renderer: drawnBy('Mozilla'),
  clock: put.time({ clockStepMs: 16.67 }),
  zone: put.time({ zone: 'UTC' }),
  touch: put.page({ maxTouchPoints: 5 }),
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

  it.each(Object.entries({ chrome, safari, brave }))('is nothing that %s wears', (_name, make) => {
    expect(defensesOf(make, marks(...MARKS))).not.toContain('firefox-rfp');
  });

  it.each<readonly [string, Change, boolean]>([
    ['Reykjavik', put.time({ zone: 'Atlantic/Reykjavik' }), true],
    ['a clock of 16.6 ms', put.time({ clockStepMs: 16.6 }), true],
    ['another time zone', put.time({ zone: 'Etc/GMT+3' }), false],
    ['a clock of 1 ms', put.time({ clockStepMs: 1 }), false],
    ['another renderer', drawnBy('Mozilla Renderer'), false],
    ['a screen without widths', all(marks('screen'), put.screen({ width: null, outerWidth: null })), false],
    [
      'a screen without heights',
      all(marks('screen'), put.screen({ height: null, outerHeight: null })),
      false,
    ],
    ...['width', 'height', 'innerWidth', 'innerHeight', 'outerWidth', 'outerHeight'].map(
      (side) => [`another ${side}`, all(marks('screen'), put.screen({ [side]: 700 })), false] as const,
    ),
  ])('knows its marks: %s', (_name, mark, isMark) => {
    expect(defensesOf(firefox, marks('canvas', 'touch'), mark)).toEqual(isMark ? ['firefox-rfp'] : []);
  });

  it('has no mark in the five touch points of a touch screen, nor in a canvas that reads back right', () => {
    const touched = all(marks('touch'), put.media({ pointer: 'coarse' }));
    expect(defensesOf(firefox, marks('canvas', 'screen'), touched)).toEqual([]);
    const right = put.graphics({ canvasFlatBadPixels: 0 });
    expect(defensesOf(firefox, marks('touch', 'screen'), right)).toEqual([]);
  });
});

/** Its name in two places, noise in two ways: each is one of four marks. */
const BRAVE_MARKS: readonly Change[] = [
  put.page({ brave: true }),
  uaData({ brands: ['Chromium', 'Brave'].map((brand) => ({ brand, version: '141' })) }),
  put.page({ gpc: true }),
  put.graphics({ canvasStable: false }),
  put.graphics({ canvasFlatBadPixels: 1 }),
  put.graphics({ audioStable: false }),
];
/** Two names are one mark, and so are two of the canvas. */
const KIND = [0, 0, 1, 2, 2, 3];

describe('Brave', () => {
  it('is recognised by any three of its four marks, and by no two', () => {
    const quiet = put.graphics({ canvasStable: true, canvasFlatBadPixels: 0, audioStable: true });
    fc.assert(
      fc.property(fc.subarray([...BRAVE_MARKS.keys()]), (worn) => {
        const changes = worn.map((i) => BRAVE_MARKS[i] ?? nothing);
        const kinds = new Set(worn.map((i) => KIND[i]));
        expect(defensesOf(chrome, put.page({ gpc: false }), quiet, ...changes)).toEqual(
          kinds.size >= 3 ? ['brave'] : [],
        );
      }),
      { seed, numRuns: 200 },
    );
  });

  it('is no Chromium with GPC and noise that has no hints', () => {
    const noisy = all(put.page({ gpc: true, uaData: null }), put.graphics({ audioStable: false }));
    expect(defensesOf(chrome, noisy)).toEqual([]);
  });

  it.each(Object.entries({ firefox, safari }))('is not recognised on the engine of %s', (_name, make) => {
    const brands = { uaData: { brands: [{ brand: 'Brave', version: '141' }] } };
    const pretending = put.page({ brave: true, gpc: true, ...brands });
    const noise = put.graphics({ canvasFlatBadPixels: 9, audioStable: false });
    expect(defensesOf(make, pretending, noise)).toEqual([]);
  });

  it('needs no GPC: under it nobody is identified anyway', () => {
    expect(judge(brave()).facts.defenses).toEqual(['brave']);
    for (const gpc of [null, false]) expect(defensesOf(brave, put.page({ gpc }))).toEqual(['brave']);
  });
});

describe('what a defense exempts', () => {
  it('is only what names it: T9 fires under resistFingerprinting', () => {
    const judged = changed(firefoxRfp, header('user-agent', 'Mozilla/5.0 (X11; rv:1.0) Gecko/1 Firefox/1.0'));
    expect(judged).toMatchObject({ class: 'unknown', strong: ['T9'] });
  });

  it('is nothing for a person without it', () => {
    const linux = { platform: 'Linux x86_64' };
    const disguised = changed(firefox, put.page(linux), put.worker(linux));
    expect(disguised).toMatchObject({ class: 'unknown', strong: ['T2'] });
  });

  it('is the pattern of an extension too: only read-outs are patched', () => {
    const judged = changed(chrome, patched('canvas', 'audio'), put.graphics({ canvasStable: false }));
    expect(judged).toMatchObject({ class: 'human', strong: [], inconsistency: 0 });
  });
});

const CHROME = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0';
const IOS = 'AppleWebKit/605.1.15 (KHTML, like Gecko)';
const IPHONE = `iPhone; CPU iPhone OS 18_5 like Mac OS X) ${IOS}`;

describe('readAgent', () => {
  it.each([
    [`Windows NT 10.0; Win64; x64) ${CHROME} Safari/537.36`, 'blink chrome 142 windows'],
    [`Windows NT 10.0; Win64; x64) ${CHROME} Safari/537.36 Edg/142.0.0.0`, 'blink chrome 142 windows'],
    [`Macintosh; Intel Mac OS X 10_15_7) ${CHROME} Safari/537.36`, 'blink chrome 142 macos'],
    [`X11; Linux x86_64) ${CHROME} Safari/537.36`, 'blink chrome 142 linux'],
    [`X11; CrOS x86_64 14541.0.0) ${CHROME} Safari/537.36`, 'blink chrome 142 chromeos'],
    [`Linux; Android 10; K) ${CHROME} Mobile Safari/537.36`, 'blink chrome 142 android mobile'],
    [`Linux; Android 10; K) ${CHROME} Safari/537.36`, 'blink chrome 142 android'],
    ['X11; Linux x86_64) AppleWebKit/537.36 HeadlessChrome/142.0.0.0', 'blink chrome 142 linux'],
    ['X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'gecko firefox 140 linux'],
    ['Android 15; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0', 'gecko firefox 140 android mobile'],
    [`Macintosh; Intel Mac OS X 10_15_7) ${IOS} Version/18.5 Safari/605.1.15`, 'webkit safari 18 macos'],
    [`${IPHONE} Version/18.5 Mobile/15E148 Safari/604.1`, 'webkit safari 18 ios mobile'],
    [`iPad; CPU OS 16_6 like Mac OS X) ${IOS} Version/16.6 Mobile/15E148`, 'webkit safari 16 ios mobile'],
    [`${IPHONE} CriOS/142.0.0.0 Mobile/15E148 Safari/604.1`, 'webkit safari 0 ios mobile'],
    [`${IPHONE} FxiOS/140.0 Mobile/15E148 Safari/605.1.15`, 'webkit safari 0 ios mobile'],
    [`X11; Linux x86_64) ${IOS} Version/18.0 Safari/605.1.15`, 'webkit safari 18 linux'],
    ['curl/8.11.0', 'unknown other 0 unknown'],
  ])('of (%s is %s', (text, expected) => {
    const { engine, browser, major, os, mobile } = readAgent(`Mozilla/5.0 (${text}`);
    expect(`${engine} ${browser} ${major} ${os}${mobile ? ' mobile' : ''}`).toBe(expected);
  });

  it('knows nothing of null and undefined', () => {
    expect(readAgent(null)).toEqual(readAgent(''));
    expect(readAgent(undefined)).toEqual(readAgent(''));
  });
});

describe('osFamily', () => {
  it.each<[string | null | undefined, OsFamily]>([
    ['Win32', 'windows'],
    ['Windows', 'windows'],
    ['MacIntel', 'macos'],
    ['macOS', 'macos'],
    ['iPhone', 'ios'],
    ['iPad', 'ios'],
    ['Linux armv8l', 'linux'],
    ['Android', 'android'],
    ['Chrome OS', 'chromeos'],
    ['Chromium OS', 'chromeos'],
    ['Unknown', 'unknown'],
    [null, 'unknown'],
  ])('of %j is %s', (text, family) => {
    expect(osFamily(text)).toBe(family);
  });
});
