import { type ChromiumOptions, openChromium } from '../browsers/chromium.ts';
import { type FirefoxOptions, openFirefox, openFirefoxPhoneView } from '../browsers/firefox.ts';
import { openEpiphany, openFalkon, openMiniBrowser, openQutebrowser, openSurf } from '../browsers/webkit.ts';
import type { ProgramName } from '../lib/programs.ts';
import type { Run } from '../lib/types.ts';
import { desktopChrome, IPHONE, WINDOWS_FIREFOX } from './names.ts';

/** Browsers that nothing drives, as people set them up. */

function person(browser: string, setup: string, programs: readonly ProgramName[], open: Run['open']): Run {
  return { browser, driver: '-', setup, truth: 'person', programs: [...programs, 'xvfb'], open };
}

const chromium = (setup: string, options: ChromiumOptions = {}): Run =>
  person('Chromium', setup, ['chromium'], (visit) => openChromium(visit, options));

const chromiumBy = (maker: ProgramName, browser: string): Run =>
  person(browser, 'as installed', [maker], (visit) => openChromium(visit, { program: maker }));

const firefox = (setup: string, options: FirefoxOptions = {}): Run =>
  person('Firefox', setup, ['firefox'], (visit) => openFirefox(visit, options));

const DEVTOOLS = '--auto-open-devtools-for-tabs';
const SOFTWARE_WEBGL = '--enable-unsafe-swiftshader';

/** Opens developer tools with the phone view on. @param device as the tools' list names it */
function phoneView(device: string): unknown {
  const value = JSON.stringify({ device, orientation: 'vertical', mode: 'default' });
  const preferences = { 'emulation.show-device-mode': 'true', 'emulation.device-mode-value': value };
  return { devtools: { preferences } };
}

const asDevice = (device: string, flags: readonly string[] = []): ChromiumOptions => ({
  flags: [DEVTOOLS, ...flags],
  preferences: phoneView(device),
  late: true,
});

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
  chromium('developer tools', { flags: [DEVTOOLS], late: true }),
  chromium('developer tools in a window of their own', {
    flags: [DEVTOOLS],
    preferences: { devtools: { preferences: { currentDockState: '"undocked"' } } },
    late: true,
  }),
  chromium('developer tools, software WebGL by flag', { flags: [DEVTOOLS, SOFTWARE_WEBGL], late: true }),
  chromium('developer tools, page as a Pixel', asDevice('Pixel 9')),
  chromium('developer tools, page as a Pixel, software WebGL by flag', asDevice('Pixel 9', [SOFTWARE_WEBGL])),
  chromium('developer tools, page as an iPhone', asDevice('iPhone 16')),
  chromium('developer tools, page as an iPad', asDevice('iPad Mini')),
  chromiumBy('chrome', 'Google Chrome'),
  chromiumBy('edge', 'Microsoft Edge'),
  chromiumBy('brave', 'Brave'),
  chromiumBy('opera', 'Opera'),
  chromiumBy('vivaldi', 'Vivaldi'),
];

const RFP = { 'privacy.resistFingerprinting': true } as const;

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
  person('Firefox', 'developer tools, page as an iPhone', ['firefox', 'openbox', 'xdotool'], (visit) =>
    openFirefoxPhoneView(visit, IPHONE),
  ),
  person('LibreWolf', 'as installed', ['librewolf'], (visit) => openFirefox(visit, { program: 'librewolf' })),
];

const OTHERS: readonly Run[] = [
  person('WebKitGTK', 'MiniBrowser', ['minibrowser'], (visit) => openMiniBrowser(visit)),
  person('WebKitGTK', 'Epiphany', ['epiphany', 'dbus'], (visit) => openEpiphany(visit)),
  person('WebKitGTK', 'Epiphany, private window', ['epiphany', 'dbus'], (visit) =>
    openEpiphany(visit, ['--incognito-mode']),
  ),
  person('WebKitGTK', 'surf', ['surf'], (visit) => openSurf(visit)),
  person('QtWebEngine', 'Falkon', ['falkon'], (visit) => openFalkon(visit)),
  person('QtWebEngine', 'qutebrowser', ['qutebrowser'], (visit) => openQutebrowser(visit)),
  person('QtWebEngine', 'qutebrowser, named as Chrome by a setting', ['qutebrowser'], (visit) =>
    openQutebrowser(visit, { flags: ['--set', 'content.headers.user_agent', desktopChrome()] }),
  ),
];

export const PEOPLE: readonly Run[] = [...CHROMIUM, ...FIREFOX, ...OTHERS];
