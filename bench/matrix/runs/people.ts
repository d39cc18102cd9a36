import { type ChromiumOptions, desktopChrome, openChromium } from '../browsers/chromium.ts';
import { type FirefoxOptions, openFirefox } from '../browsers/firefox.ts';
import { type Gesture, press } from '../lib/hand.ts';
import { start } from '../lib/process.ts';
import { type ProgramName, program } from '../lib/programs.ts';
import type { Run } from '../lib/types.ts';

/** Runs of browsers that no program drives, set up as people do. */

function person(browser: string, setup: string, name: ProgramName, open: Run['open']): Run {
  return { browser, driver: '-', setup, truth: 'person', programs: [name, 'xvfb'], open };
}

const chromium = (setup: string, options: ChromiumOptions = {}): Run =>
  person('Chromium', setup, 'chromium', (visit) => openChromium(visit, options));

const firefox = (setup: string, options: FirefoxOptions = {}): Run =>
  person('Firefox', setup, 'firefox', (visit) => openFirefox(visit, options));

/** Adds a press of the button through the display, not through an interface of the browser. */
function pressing(run: Run, open: Run['open'], gesture?: Gesture): Run {
  return {
    ...run,
    driver: 'by hand',
    programs: [...run.programs, 'openbox', 'xdotool'],
    async open(visit) {
      await open(visit);
      await visit.ready();
      await press(visit, gesture);
    },
  };
}

const chromiumPressed = (setup: string, options: ChromiumOptions = {}, gesture?: Gesture): Run =>
  pressing(chromium(setup), (visit) => openChromium(visit, { ...options, press: true }), gesture);

const firefoxPressed = (setup: string, options: FirefoxOptions = {}): Run =>
  pressing(firefox(setup), (visit) => openFirefox(visit, { ...options, press: true }));

const DEVTOOLS = '--auto-open-devtools-for-tabs';
const SOFTWARE_WEBGL = '--enable-unsafe-swiftshader';
const UNDOCKED = { devtools: { preferences: { currentDockState: '"undocked"' } } };
const ACCESSIBLE = '--force-renderer-accessibility';
/** Chromium stores a zoom level as the exponent of 1.2. */
const LARGE = {
  partition: { default_zoom_level: { x: Math.log(2) / Math.log(1.2) } },
  webkit: { webprefs: { default_font_size: 28, minimum_font_size: 20 } },
};

/** Opens developer tools with the phone view on. @param device as the tools' list names it */
function asDevice(device: string, flags: readonly string[] = []): ChromiumOptions {
  const value = JSON.stringify({ device, orientation: 'vertical', mode: 'default' });
  const preferences = { 'emulation.show-device-mode': 'true', 'emulation.device-mode-value': value };
  return { flags: [DEVTOOLS, ...flags], preferences: { devtools: { preferences } }, late: true };
}

/** The device toolbar without a device, of the type "Desktop": the page is as large as its screen, in a wider window. */
const DEVICE_TOOLBAR: ChromiumOptions = {
  flags: [DEVTOOLS],
  preferences: {
    devtools: {
      preferences: {
        'emulation.show-device-mode': 'true',
        'emulation.device-mode-value': JSON.stringify({ device: '', orientation: '', mode: '' }),
        'emulation.device-ua': '"Desktop"',
        'emulation.device-width': '1177',
        'emulation.device-height': '837',
      },
    },
  },
  late: true,
};

const CHROMIUM: readonly Run[] = [
  chromium('as installed'),
  chromium('private window', { flags: ['--incognito'] }),
  chromium('guest window', { flags: ['--guest'] }),
  chromium('German, clock of Berlin', {
    flags: ['--lang=de', '--accept-lang=de-DE,de,en-US,en'],
    environment: { TZ: 'Europe/Berlin', LANGUAGE: 'de' },
  }),
  chromium('software WebGL by flag', { flags: [SOFTWARE_WEBGL] }),
  chromium('WebGL by Mesa', { flags: ['--use-gl=angle', '--use-angle=gl', '--ignore-gpu-blocklist'] }),
  chromium('full screen, scaled by 1.5', {
    flags: ['--start-fullscreen', '--force-device-scale-factor=1.5'],
  }),
  chromium('kiosk', { flags: ['--kiosk'] }),
  chromium('small window', { flags: ['--window-size=400,800'] }),
  chromium('add-on with canvas and audio noise', { addOn: 'noise', late: true }),
  chromium('add-on that names another browser', { addOn: 'switcher', late: true }),
  chromium('add-on that edits headers', { addOn: 'headers', late: true }),
  chromium('add-on that edits headers, developer tools', { addOn: 'headers', flags: [DEVTOOLS], late: true }),
  chromium('developer tools', { flags: [DEVTOOLS], late: true }),
  chromium('developer tools, device toolbar as a desktop', DEVICE_TOOLBAR),
  chromium('developer tools in a window of their own', {
    flags: [DEVTOOLS],
    preferences: UNDOCKED,
    late: true,
  }),
  chromium('developer tools, software WebGL by flag', { flags: [DEVTOOLS, SOFTWARE_WEBGL], late: true }),
  chromium('developer tools, page as a Pixel', asDevice('Pixel 9')),
  chromium('developer tools, page as a Pixel, software WebGL by flag', asDevice('Pixel 9', [SOFTWARE_WEBGL])),
  chromium('developer tools, page as an iPhone', asDevice('iPhone 16')),
  chromium('developer tools, page as an iPad', asDevice('iPad Mini')),
];

const RFP = { 'privacy.resistFingerprinting': true } as const;
const WINDOWS_FIREFOX = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:153.0) Gecko/20100101 Firefox/153.0';

const FIREFOX: readonly Run[] = [
  firefox('as installed'),
  firefox('private window', { flags: ['--private-window'] }),
  firefox('German, clock of Berlin', {
    preferences: { 'intl.accept_languages': 'de, en-US, en' },
    environment: { TZ: 'Europe/Berlin' },
  }),
  firefox('strict tracking protection', {
    preferences: { 'browser.contentblocking.category': 'strict', 'privacy.fingerprintingProtection': true },
  }),
  firefox('resistFingerprinting', { preferences: RFP }),
  firefox('resistFingerprinting, letter-boxed', {
    preferences: { ...RFP, 'privacy.resistFingerprinting.letterboxing': true, 'privacy.spoof_english': 2 },
  }),
  firefox('resistFingerprinting, no WebGL', { preferences: { ...RFP, 'webgl.disabled': true } }),
  firefox('named as Chrome by a preference', {
    preferences: { 'general.useragent.override': desktopChrome('Windows NT 10.0; Win64; x64') },
  }),
  firefox('named as Firefox for Windows by a preference', {
    preferences: { 'general.useragent.override': WINDOWS_FIREFOX, 'general.platform.override': 'Win32' },
  }),
  firefox('developer tools', { flags: ['--devtools'], late: true }),
];

const WEBKIT = person('WebKitGTK', 'MiniBrowser', 'minibrowser', async (visit) => {
  start(visit, program('minibrowser'), [visit.url]);
});

const PRESSING: readonly Run[] = [
  chromiumPressed('as installed'),
  chromiumPressed('developer tools, undocked', { flags: [DEVTOOLS], preferences: UNDOCKED, late: true }),
  chromiumPressed('developer tools, undocked, software WebGL by flag', {
    flags: [DEVTOOLS, SOFTWARE_WEBGL],
    preferences: UNDOCKED,
    late: true,
  }),
  chromiumPressed('kiosk', { flags: ['--kiosk'] }),
  chromiumPressed('kiosk, software WebGL by flag', { flags: ['--kiosk', SOFTWARE_WEBGL] }),
  chromiumPressed('virtual machine: software WebGL by flag, whole screen', {
    flags: [SOFTWARE_WEBGL, '--start-maximized'],
  }),
  chromiumPressed('accessibility tree on', { flags: [ACCESSIBLE] }),
  chromiumPressed('accessibility tree on, large text, zoom 2', { flags: [ACCESSIBLE], preferences: LARGE }),
  chromiumPressed('forced colours', { flags: ['--force-high-contrast', '--force-dark-mode'] }),
  chromiumPressed('screen magnified by 2', { flags: ['--force-device-scale-factor=2'] }),
  chromiumPressed('keyboard alone', { flags: [ACCESSIBLE] }, 'keys'),
  chromiumPressed('pointer that jumps, as switch controls do', { flags: [ACCESSIBLE] }, 'one jump'),
  chromiumPressed('graphics switched off', { flags: ['--disable-gpu', '--disable-3d-apis'] }),
  chromiumPressed('Japanese, clock of Tokyo', {
    flags: ['--lang=ja', '--accept-lang=ja,en-US,en'],
    environment: { TZ: 'Asia/Tokyo', LANGUAGE: 'ja' },
  }),
  chromiumPressed('add-on with canvas and audio noise', { addOn: 'noise', late: true }),
  firefoxPressed('as installed'),
  firefoxPressed('resistFingerprinting', { preferences: RFP }),
  firefoxPressed('developer tools', { flags: ['--devtools'], late: true }),
  firefoxPressed('screen magnified by 2', { preferences: { 'layout.css.devPixelsPerPx': '2' } }),
  firefoxPressed('forced colours, large text', {
    preferences: { 'browser.display.document_color_use': 2, 'font.minimum-size.x-western': 24 },
  }),
];

export const PEOPLE: readonly Run[] = [...CHROMIUM, ...FIREFOX, WEBKIT, ...PRESSING];
