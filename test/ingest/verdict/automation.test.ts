import { describe, expect, it } from 'vitest';
import {
  type Browser,
  brave,
  changed,
  chrome,
  firefox,
  firefoxRfp,
  iPhone,
  safari,
} from './support/browsers.ts';
import { all, type Change, groups, header, nothing, patched, setFields, uaData } from './support/changes.ts';
import { AUTOMATION_FIRES, globals } from './support/fires-automation.ts';

/** A: a program drives this browser. No defense exempts any of them. */

describe('fires', () => {
  it.each(AUTOMATION_FIRES)('%s: %s', (id, _name, change) => {
    const judged = changed(chrome, change);
    expect(judged.ids).toContain(id);
    expect(judged.class).toBe('undeclared_automation');
    expect(judged.automation).toBe(true);
    expect(judged.score).toBeGreaterThanOrEqual(0.6);
  });
});

const OLD_GREASE = '" Not A;Brand";v="99", "Chromium";v="109", "Google Chrome";v="109"';
const SILENT: readonly (readonly [string, string, () => Browser, Change])[] = [
  ['A1', 'webdriver false', chrome, setFields('page', { webdriver: false })],
  ['A1', 'webdriver missing: LibreWolf takes it away', firefox, setFields('page', { webdriver: null })],
  [
    'A2',
    'Electron is a real app',
    chrome,
    setFields('page', {
      userAgent:
        'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Slack/4.4 Chrome/141.0.0.0 Electron/38.0 Safari/537.36',
    }),
  ],
  ['A2', 'a head in another word', chrome, header('user-agent', 'Mozilla/5.0 HeadlightChrome/1')],
  ...[
    'phantom',
    'emit',
    'spawn',
    'ethereum',
    'selenium',
    'cdc',
    'webdriver',
    'my__pw',
    'onnightmare',
    'domAuto',
  ].map((name) => ['A3', `${name}: wallets and pages define it`, chrome, globals(name)] as const),
  ['A3', 'no globals', chrome, globals()],
  ['A4', "today's form", chrome, header('sec-ch-ua', '"Not;A Brand";v="99", "Chromium";v="141"')],
  [
    'A4',
    'a forgotten Chrome that is as old as its brand',
    chrome,
    (browser) => {
      const old = (browser.headers['user-agent'] ?? '').replace('Chrome/141', 'Chrome/109');
      Object.assign(browser.signals.page, { userAgent: old });
      Object.assign(browser.headers, { 'user-agent': old, 'sec-ch-ua': OLD_GREASE });
    },
  ],
  ['A4', 'not Chromium', firefox, header('sec-ch-ua', OLD_GREASE)],
  ['A4', 'Chrome on iOS is not Chromium', iPhone, header('sec-ch-ua', OLD_GREASE)],
  ['A5', 'no worker', chrome, groups({ worker: null })],
  ['A5', 'no client hints in the worker', chrome, setFields('worker', { uaData: null })],
  [
    'A5',
    'no brands in the page either',
    chrome,
    all(uaData({ brands: [] }), setFields('worker', { uaData: { brands: [], platform: 'Windows' } })),
  ],
  ['A5', 'no client hints at all', safari, nothing],
  ['A6', 'a frame that is there when it should be', chrome, setFields('frame', { srcdocPreattached: false })],
  ['A6', 'a frame that does not say', chrome, setFields('frame', { srcdocPreattached: null })],
];

describe('stays silent', () => {
  it.each(SILENT)('%s: %s', (id, _name, make, change) => {
    const judged = changed(make, change);
    expect(judged.ids).not.toContain(id);
    expect(judged.automation).toBe(false);
  });
});

describe('demoted', () => {
  const A5 = AUTOMATION_FIRES.find(([id]) => id === 'A5')?.[2] as Change;
  const A6 = setFields('frame', { srcdocPreattached: true });
  const M2 = setFields('tells', { cdp: true });
  const T8 = patched('userAgent');

  it('A5 beside M2 is the device mode of developer tools: unknown', () => {
    const judged = changed(chrome, all(A5, M2));
    expect(judged.ids).toEqual(expect.arrayContaining(['A5', 'M2']));
    expect(judged).toMatchObject({ class: 'unknown', automation: false, inconsistency: 0 });
    expect(judged.score).toBeCloseTo(0.3);
  });

  it('A5 beside M2 seen in the worker alone is the same', () => {
    expect(changed(chrome, all(A5, setFields('worker', { cdp: true }))).class).toBe('unknown');
  });

  it.each([
    ['A1', setFields('page', { webdriver: true })],
    ['another M', setFields('page', { chromeObject: false })],
    ['a T that no tools and no add-on explain', header('sec-ch-ua-platform', '"Linux"')],
  ])('A5 and M2 beside %s are automation all the same', (_name, other) => {
    expect(changed(chrome, all(A5, M2, other)).class).toBe('undeclared_automation');
  });

  it('A6 with only T8 beside it is a script-blocking extension: T', () => {
    const judged = changed(chrome, all(A6, T8));
    expect(judged).toMatchObject({ class: 'unknown', automation: false });
    expect(judged.rules.find(({ id }) => id === 'A6')?.kind).toBe('T');
  });

  it('W rows beside A6 and T8 change nothing', () => {
    const judged = changed(chrome, all(A6, T8, setFields('time', { zone: 'UTC' })));
    expect(judged.class).toBe('unknown');
  });

  it.each([
    ['nothing', nothing],
    ['T8 of read-outs only', patched('canvas', 'audio')],
    ['T8 and M2', all(T8, M2)],
    [
      'T8 and another T',
      all(T8, header('user-agent', 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/140.0.0.0')),
    ],
    ['another T alone', header('sec-ch-ua-platform', '"Linux"')],
  ])('A6 beside %s stays automation', (_name, other) => {
    expect(changed(chrome, all(A6, other)).class).toBe('undeclared_automation');
  });
});

describe('a privacy defense', () => {
  it.each<readonly [string, () => Browser]>([
    ['resistFingerprinting', firefoxRfp],
    ['Brave', brave],
  ])('%s exempts no A rule', (_name, make) => {
    for (const [id, , change] of AUTOMATION_FIRES.filter(([rule]) => ['A1', 'A3', 'A6'].includes(rule))) {
      const judged = changed(make, change);
      expect(judged.facts.defenses).toHaveLength(1);
      expect(judged.ids).toContain(id);
      expect(judged.class).toBe('undeclared_automation');
    }
  });
});
