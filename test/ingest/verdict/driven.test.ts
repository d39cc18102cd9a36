import { describe, expect, it } from 'vitest';
import {
  androidChrome,
  androidDesktopMode,
  type Browser,
  changed,
  chrome,
  firefox,
  firefoxRfp,
  iPad,
  linuxChrome,
  safari,
} from './support/browsers.ts';
import { all, type Change, groups, named, setFields } from './support/changes.ts';
import { DRIVEN_FIRES } from './support/fires-driven.ts';

/** Presses, times, permissions, a turned screen: what a driver leaves in a browser that shows no other mark. */

const forceless = setFields('input', { forceless: true });
const offGrid = setFields('input', { offGrid: true });
const onGrid = setFields('input', { offGrid: false });
const turnedScreen = setFields('screen', { width: 600, height: 900, orientation: 'landscape-primary' });

const MOBILE_WINDOWS =
  'Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36';

type Row = readonly [string, string, () => Browser, Change];

const SILENT: readonly Row[] = [
  ['A8', 'a press with force', chrome, setFields('input', { forceless: false })],
  ['A8', 'no press', chrome, setFields('input', { forceless: null })],
  ['A8', 'Firefox', firefox, forceless],
  ['A8', 'Safari', safari, forceless],
  ['A9', 'permissions that a person gave', chrome, setFields('tells', { granted: 5, barred: 0 })],
  ['A9', 'a strict policy of an employer', chrome, setFields('tells', { granted: 1, barred: 4 })],
  ['A9', 'three of four', chrome, setFields('tells', { granted: 2, barred: 3 })],
  ['A9', 'Firefox', firefox, setFields('tells', { granted: 2, barred: 4 })],
  ['T14', 'its own clock on Windows', chrome, offGrid],
  ['T14', 'Windows whose clock is as coarse', chrome, all(onGrid, setFields('time', { clockStepMs: 15.6 }))],
  ['T14', 'Windows whose clock is not known', chrome, all(onGrid, setFields('time', { clockStepMs: null }))],
  ['T14', 'Windows that tells no times', chrome, all(onGrid, groups({ time: null }))],
  ['T14', 'Firefox on Windows', firefox, onGrid],
  ['T14', 'Linux', linuxChrome, onGrid],
  [
    'T15',
    'a tall screen',
    chrome,
    setFields('screen', { width: 1080, height: 1920, orientation: 'portrait-primary' }),
  ],
  ['T15', 'a screen turned upside down', chrome, setFields('screen', { orientation: 'landscape-secondary' })],
  [
    'T15',
    'a screen as wide as high',
    chrome,
    setFields('screen', { width: 900, height: 900, orientation: 'portrait-primary' }),
  ],
  [
    'T15',
    'a screen that does not say',
    chrome,
    setFields('screen', { width: 600, height: 900, orientation: null }),
  ],
  ['T15', 'a screen without a width', chrome, all(turnedScreen, setFields('screen', { width: null }))],
  [
    'T15',
    'a screen without a height',
    chrome,
    setFields('screen', { width: 600, height: null, orientation: 'portrait-primary' }),
  ],
  [
    'T15',
    'a phone that names the system of a desktop',
    chrome,
    all(turnedScreen, named(MOBILE_WINDOWS, 'Win32')),
  ],
  ['T15', 'a phone', androidChrome, all(turnedScreen, setFields('screen', { turns: true }))],
  ['T15', 'a phone that asks for the desktop site', androidDesktopMode, setFields('screen', { turns: true })],
  ['T15', 'an iPad with the name of a Mac', iPad, setFields('screen', { turns: true })],
  ['T15', 'resistFingerprinting, which always says landscape', firefoxRfp, turnedScreen],
  ['M12', 'no answer', chrome, setFields('tells', { activated: null })],
  ['M12', 'WebKitGTK, where it is so for people', safari, setFields('tells', { activated: true })],
];

const DEVTOOLS = setFields('tells', { cdp: true });
const linuxFirefox = () => firefox('X11; Linux x86_64', 'Linux x86_64');

/** Chromium stamps the events of Wayland itself. */
const ON_WAYLAND: readonly (readonly [string, () => Browser, Change, string])[] = [
  ["the display's times", linuxChrome, onGrid, 'human'],
  ['times of its own', linuxChrome, offGrid, 'human'],
  ['times of its own beside developer tools', linuxChrome, all(offGrid, DEVTOOLS), 'unknown'],
  ['Windows', chrome, offGrid, 'human'],
  ['Firefox', linuxFirefox, offGrid, 'human'],
  ['no hints', linuxChrome, all(offGrid, setFields('page', { uaData: null })), 'human'],
  ['too few events', linuxChrome, setFields('input', { offGrid: null }), 'human'],
];

const OF_KIND = { A: 'undeclared_automation', T: 'unknown', M: 'unknown' } as const;

describe('fires', () => {
  it.each(DRIVEN_FIRES)('%s: %s — and alone it is what its kind says', (id, _name, make, change) => {
    const kind = id[0] as keyof typeof OF_KIND;
    expect(changed(make, change)).toMatchObject({
      class: OF_KIND[kind],
      strong: [id],
      automation: kind === 'A',
    });
  });
});

describe('the clock of the mouse on Linux', () => {
  it.each(ON_WAYLAND)('says nothing: %s', (_name, make, change, expected) => {
    expect(changed(make, change).class).toBe(expected);
  });
});

describe('stays silent', () => {
  it.each(SILENT)('%s: %s', (id, _name, make, change) => {
    expect(changed(make, change).ids).not.toContain(id);
  });
});
