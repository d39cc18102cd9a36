import { type ChromiumOptions, openChromium } from '../browsers/chromium.ts';
import { type FirefoxOptions, openFirefox } from '../browsers/firefox.ts';
import { openEpiphany, openFalkon, openQutebrowser, openSurf } from '../browsers/webkit.ts';
import {
  missingAtSpi,
  openAccessible,
  openRdp,
  openSway,
  openWeston,
  pressByScreenReader,
} from '../lib/desktops.ts';
import { type Display, startNestedDisplay, startRemoteDisplay } from '../lib/display.ts';
import { type Gesture, MIDDLE, type Point, press, pressRemotely } from '../lib/hand.ts';
import { freePort } from '../lib/port.ts';
import type { ProgramName } from '../lib/programs.ts';
import type { Run, Visit } from '../lib/types.ts';
import { desktopChrome } from './names.ts';

/** People who press something: moved at the display, through no interface of the browser. */

type Open = (visit: Visit) => Promise<void>;
type Sample = 'in' | 'out';

interface Place {
  readonly driver: string;
  readonly missing?: () => string | null;
  readonly programs: readonly ProgramName[];
  readonly use: (visit: Visit, open: Open) => Promise<void>;
}

const at = (display: Display, visit: Visit): Visit => {
  visit.defer(() => display.stop());
  return { ...visit, environment: { ...visit.environment, DISPLAY: display.name } };
};

const here = (gesture?: Gesture, target?: Point): Place => ({
  driver: 'by hand',
  programs: ['xvfb', 'openbox', 'xdotool'],
  async use(visit, open) {
    await open(visit);
    await visit.ready();
    await press(visit, gesture, target);
  },
});

const REMOTE: Place = {
  driver: 'by VNC',
  programs: ['xvnc', 'openbox'],
  async use(visit, open) {
    const port = await freePort();
    await open(at(await startRemoteDisplay(port), visit));
    await visit.ready();
    await pressRemotely(port);
  },
};

const NESTED: Place = {
  driver: 'by hand',
  programs: ['xvfb', 'xephyr', 'openbox', 'xdotool'],
  async use(visit, open) {
    const inner = at(await startNestedDisplay(visit.environment), visit);
    await open(inner);
    await visit.ready();
    await press(inner);
  },
};

const SWAY: Place = {
  driver: 'by VNC',
  programs: ['sway', 'wayvnc'],
  async use(visit, open) {
    const port = await freePort();
    await open(await openSway(visit, port));
    await visit.ready();
    await pressRemotely(port);
  },
};

const WESTON: Place = {
  driver: 'by hand',
  programs: ['xvfb', 'weston', 'openbox', 'xdotool'],
  async use(visit, open) {
    await open(await openWeston(visit));
    await visit.ready();
    await press(visit, 'moves from the corner');
  },
};

const RDP: Place = {
  driver: 'by RDP',
  programs: ['xvfb', 'xorg', 'xrdp', 'xfreerdp', 'openbox', 'xdotool'],
  async use(visit, open) {
    await open(await openRdp(visit));
    await visit.ready();
    await press(visit);
  },
};

const SCREEN_READER: Place = {
  driver: 'by AT-SPI',
  missing: missingAtSpi,
  programs: ['xvfb', 'dbus-daemon'],
  async use(visit, open) {
    const inside = await openAccessible(visit);
    await open(inside);
    await visit.ready();
    pressByScreenReader(inside);
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
    driver: place.driver,
    setup,
    truth: 'person',
    ...(sample === 'out' && { sample }),
    programs: [name, ...place.programs],
    ...(place.missing && { missing: place.missing }),
    open: (visit) => place.use(visit, opens),
  };
}

const chromium = (setup: string, sample: Sample, options: ChromiumOptions = {}, place = here()): Run =>
  moved('Chromium', setup, sample, place, [
    'chromium',
    (visit) => openChromium(visit, { ...options, press: options.follow === undefined }),
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
/** Read by the page as the name of another system; the platform keeps its own. */
const AS_WINDOWS = `--user-agent=${desktopChrome('Windows NT 10.0; Win64; x64')}`;
const UNDOCKED = { devtools: { preferences: { currentDockState: '"undocked"' } } };
const RFP = { 'privacy.resistFingerprinting': true } as const;
const WAYLAND = '--ozone-platform=wayland';
const ACCESSIBLE = '--force-renderer-accessibility';
/** The level is a power of 1.2. */
const LARGE = {
  partition: { default_zoom_level: { x: Math.log(2) / Math.log(1.2) } },
  webkit: { webprefs: { default_font_size: 28, minimum_font_size: 20 } },
};

export const MOVED: readonly Run[] = [
  chromium('as installed', 'in'),
  chromium('remote desktop', 'in', {}, REMOTE),
  chromium('second page, by a link', 'in', { follow: 'link' }),
  chromium('second page, by a form', 'in', { follow: 'form' }),
  chromium('second page, by a link, remote desktop', 'in', { follow: 'link' }, REMOTE),
  chromium('second page, by a form, remote desktop', 'in', { follow: 'form' }, REMOTE),
  chromium('second page, by a link, developer tools', 'in', {
    follow: 'link',
    flags: [DEVTOOLS],
    late: true,
  }),
  chromium('second page, by a link, named as Windows by a flag', 'in', {
    follow: 'link',
    flags: [AS_WINDOWS],
  }),
  chromium('remote desktop, named as Windows by a flag', 'in', { flags: [AS_WINDOWS] }, REMOTE),
  chromium('remote desktop, software WebGL by flag', 'in', { flags: [SOFTWARE_WEBGL] }, REMOTE),
  chromium('remote desktop, developer tools', 'out', { flags: [DEVTOOLS], late: true }, REMOTE),
  chromium(
    'developer tools, software WebGL by flag',
    'in',
    { flags: [DEVTOOLS, SOFTWARE_WEBGL], late: true },
    here('moves', [300, 500]),
  ),
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
  chromium('Wayland', 'in', { flags: [WAYLAND] }, SWAY),
  chromium('Wayland, developer tools', 'in', { flags: [WAYLAND, DEVTOOLS], late: true }, SWAY),
  chromium('Wayland, software WebGL by flag', 'in', { flags: [WAYLAND, SOFTWARE_WEBGL] }, SWAY),
  chromium('Wayland in a window', 'in', { flags: [WAYLAND, '--start-maximized'] }, WESTON),
  chromium('remote desktop', 'in', {}, RDP),
  chromium(
    'remote desktop, developer tools',
    'in',
    { flags: [DEVTOOLS, '--start-maximized'], late: true },
    RDP,
  ),
  chromium('pressed by a screen reader', 'in', { flags: [ACCESSIBLE] }, SCREEN_READER),
  firefox('as installed', 'in'),
  firefox('Wayland', 'in', {}, SWAY),
  firefox('Wayland in a window', 'in', {}, WESTON),
  firefox('remote desktop', 'in', {}, RDP),
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
