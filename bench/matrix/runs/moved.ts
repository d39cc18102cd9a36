import { type ChromiumOptions, openChromium } from '../browsers/chromium.ts';
import { type FirefoxOptions, openFirefox } from '../browsers/firefox.ts';
import { openEpiphany, openFalkon, openQutebrowser, openSurf } from '../browsers/webkit.ts';
import { type Display, startNestedDisplay, startRemoteDisplay } from '../lib/display.ts';
import { type Gesture, MIDDLE, type Point, press, pressRemotely } from '../lib/hand.ts';
import { freePort } from '../lib/port.ts';
import type { ProgramName } from '../lib/programs.ts';
import type { Run, Visit } from '../lib/types.ts';

/** People who press something: moved at the display, through no interface of the browser. */

type Open = (visit: Visit) => Promise<void>;
type Sample = 'in' | 'out';

interface Place {
  readonly programs: readonly ProgramName[];
  readonly use: (visit: Visit, open: Open) => Promise<void>;
}

const at = (display: Display, visit: Visit): Visit => {
  visit.defer(() => display.stop());
  return { ...visit, environment: { ...visit.environment, DISPLAY: display.name } };
};

const here = (gesture?: Gesture, target?: Point): Place => ({
  programs: ['xvfb', 'openbox', 'xdotool'],
  async use(visit, open) {
    await open(visit);
    await visit.ready();
    await press(visit, gesture, target);
  },
});

const REMOTE: Place = {
  programs: ['xvnc', 'openbox'],
  async use(visit, open) {
    const port = await freePort();
    await open(at(await startRemoteDisplay(port), visit));
    await visit.ready();
    await pressRemotely(port);
  },
};

const NESTED: Place = {
  programs: ['xvfb', 'xephyr', 'openbox', 'xdotool'],
  async use(visit, open) {
    const inner = at(await startNestedDisplay(visit.environment), visit);
    await open(inner);
    await visit.ready();
    await press(inner);
  },
};

function moved(
  browser: string,
  setup: string,
  sample: Sample,
  place: Place,
  open: readonly [ProgramName, Open],
): Run {
  const [name, opens] = open;
  return {
    browser,
    driver: place === REMOTE ? 'by VNC' : 'by hand',
    setup,
    truth: 'person',
    ...(sample === 'out' && { sample }),
    programs: [name, ...place.programs],
    open: (visit) => place.use(visit, opens),
  };
}

const chromium = (setup: string, sample: Sample, options: ChromiumOptions = {}, place = here()): Run =>
  moved('Chromium', setup, sample, place, [
    'chromium',
    (visit) => openChromium(visit, { ...options, press: true }),
  ]);

const firefox = (setup: string, sample: Sample, options: FirefoxOptions = {}, place = here()): Run =>
  moved('Firefox', setup, sample, place, [
    'firefox',
    (visit) => openFirefox(visit, { ...options, press: true }),
  ]);

const other = (
  browser: string,
  name: ProgramName,
  setup: string,
  open: Open,
  place = here('moves', MIDDLE),
): Run => moved(browser, setup, 'in', place, [name, (visit) => open({ ...visit, url: visit.pressUrl })]);

const SOFTWARE_WEBGL = '--enable-unsafe-swiftshader';
const DEVTOOLS = '--auto-open-devtools-for-tabs';
const UNDOCKED = { devtools: { preferences: { currentDockState: '"undocked"' } } };
const RFP = { 'privacy.resistFingerprinting': true } as const;
const ACCESSIBLE = '--force-renderer-accessibility';
/** The level is a power of 1.2. */
const LARGE = {
  partition: { default_zoom_level: { x: Math.log(2) / Math.log(1.2) } },
  webkit: { webprefs: { default_font_size: 28, minimum_font_size: 20 } },
};

export const MOVED: readonly Run[] = [
  chromium('as installed', 'in'),
  chromium('remote desktop', 'in', {}, REMOTE),
  chromium('remote desktop, software WebGL by flag', 'in', { flags: [SOFTWARE_WEBGL] }, REMOTE),
  chromium('remote desktop, developer tools', 'out', { flags: [DEVTOOLS], late: true }, REMOTE),
  chromium('developer tools, software WebGL by flag', 'in', {
    flags: [DEVTOOLS, SOFTWARE_WEBGL],
    late: true,
  }),
  chromium('developer tools, undocked', 'in', {
    flags: [DEVTOOLS],
    preferences: UNDOCKED,
    late: true,
  }),
  chromium('developer tools, undocked, software WebGL by flag', 'in', {
    flags: [DEVTOOLS, SOFTWARE_WEBGL],
    preferences: UNDOCKED,
    late: true,
  }),
  chromium('kiosk', 'in', { flags: ['--kiosk'] }),
  chromium('kiosk, software WebGL by flag', 'out', { flags: ['--kiosk', SOFTWARE_WEBGL] }),
  chromium('virtual machine: software WebGL by flag, whole screen', 'in', {
    flags: [SOFTWARE_WEBGL, '--start-maximized'],
  }),
  chromium('display in a window of another', 'out', {}, NESTED),
  chromium('accessibility tree on', 'out', { flags: [ACCESSIBLE] }),
  chromium('accessibility tree on, large text, zoom 2', 'out', { flags: [ACCESSIBLE], preferences: LARGE }),
  chromium('forced colours', 'out', { flags: ['--force-high-contrast', '--force-dark-mode'] }),
  chromium('screen magnified by 2', 'out', { flags: ['--force-device-scale-factor=2'] }),
  chromium('keyboard alone', 'out', { flags: [ACCESSIBLE] }, here('keys')),
  chromium('pointer that jumps, as switch controls do', 'out', { flags: [ACCESSIBLE] }, here('one jump')),
  chromium('graphics switched off', 'out', { flags: ['--disable-gpu', '--disable-3d-apis'] }),
  chromium('Japanese, clock of Tokyo', 'out', {
    flags: ['--lang=ja', '--accept-lang=ja,en-US,en'],
    environment: { TZ: 'Asia/Tokyo', LANGUAGE: 'ja' },
  }),
  chromium('add-on with canvas and audio noise', 'in', { addOn: 'noise', late: true }),
  firefox('as installed', 'in'),
  firefox('remote desktop', 'in', {}, REMOTE),
  firefox('resistFingerprinting', 'in', { preferences: RFP }),
  firefox('remote desktop, resistFingerprinting', 'out', { preferences: RFP }, REMOTE),
  firefox('developer tools', 'out', { flags: ['--devtools'], late: true }),
  firefox('screen magnified by 2', 'out', { preferences: { 'layout.css.devPixelsPerPx': '2' } }),
  firefox('forced colours, large text', 'out', {
    preferences: { 'browser.display.document_color_use': 2, 'font.minimum-size.x-western': 24 },
  }),
  other('WebKitGTK', 'epiphany', 'Epiphany', (visit) => openEpiphany(visit)),
  other('WebKitGTK', 'surf', 'surf', (visit) => openSurf(visit)),
  other('QtWebEngine', 'falkon', 'Falkon', (visit) => openFalkon(visit)),
  other('QtWebEngine', 'qutebrowser', 'qutebrowser', (visit) => openQutebrowser(visit)),
];
