import { randomBytes } from 'node:crypto';

/** What browsers report (signals.md section 1), complete and consistent with the headers beside it. */

const CHROME = '141';
const USER_AGENT = `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${CHROME}.0.0.0 Safari/537.36`;
const RENDERER = 'ANGLE (Intel, Intel(R) UHD Graphics 620 (0x00005917) Direct3D11 vs_5_0 ps_5_0, D3D11)';
const BRANDS = [
  { brand: 'Google Chrome', version: CHROME },
  { brand: 'Not?A_Brand', version: '8' },
  { brand: 'Chromium', version: CHROME },
];
const FULL_VERSIONS = [
  { brand: 'Google Chrome', version: `${CHROME}.0.7390.55` },
  { brand: 'Not?A_Brand', version: '8.0.0.0' },
  { brand: 'Chromium', version: `${CHROME}.0.7390.55` },
];

export type Headers = Readonly<Record<string, string>>;
type Group = Record<string, unknown>;
export type SampleSignals = Record<string, unknown> & {
  page: Group;
  worker: Group;
  frame: Group;
  screen: Group;
  media: Group;
  graphics: Group;
  engine: Group;
  time: Group;
  tells: Group;
  input: Group;
};

/** Request headers of the same browser on a page of `origin`. */
export function browserHeaders(origin?: string): Headers {
  return {
    'user-agent': USER_AGENT,
    'accept-language': 'en-GB,en;q=0.9,de;q=0.8',
    'sec-ch-ua': BRANDS.map(({ brand, version }) => `"${brand}";v="${version}"`).join(', '),
    'sec-ch-ua-mobile': '?0',
    'sec-ch-ua-platform': '"Windows"',
    'sec-fetch-site': 'same-site',
    'sec-fetch-mode': 'cors',
    'sec-fetch-dest': 'empty',
    ...(origin === undefined ? {} : { origin }),
  };
}

/** A person's Chrome on a Windows laptop. `device` tells one machine from another; by default each call is a new one. */
export function desktopChrome(device = randomBytes(16).toString('hex')): SampleSignals {
  return {
    collector: '1',
    page: {
      userAgent: USER_AGENT,
      appVersion: USER_AGENT.replace('Mozilla/', ''),
      platform: 'Win32',
      vendor: 'Google Inc.',
      language: 'en-GB',
      languages: ['en-GB', 'en', 'de'],
      webdriver: false,
      hardwareConcurrency: 8,
      deviceMemory: 8,
      maxTouchPoints: 0,
      pluginCount: 5,
      pdfViewer: true,
      cookies: true,
      brave: false,
      chromeObject: true,
      gpc: null,
      uaData: {
        brands: BRANDS,
        mobile: false,
        platform: 'Windows',
        architecture: 'x86',
        bitness: '64',
        model: '',
        platformVersion: '15.0.0',
        fullVersionList: FULL_VERSIONS,
      },
    },
    worker: {
      userAgent: USER_AGENT,
      platform: 'Win32',
      languages: ['en-GB', 'en', 'de'],
      hardwareConcurrency: 8,
      webdriver: null,
      renderer: RENDERER,
      uaData: { brands: BRANDS, platform: 'Windows' },
      cdp: false,
    },
    frame: { webdriver: false, platform: 'Win32', userAgent: USER_AGENT, srcdocPreattached: false },
    screen: {
      width: 1920,
      height: 1080,
      availWidth: 1920,
      availHeight: 1032,
      innerWidth: 1423,
      innerHeight: 851,
      outerWidth: 1440,
      outerHeight: 980,
      colorDepth: 24,
      dpr: 1.25,
      orientation: 'landscape-primary',
      turns: false,
    },
    media: { pointer: 'fine', hover: true, colorGamut: 'srgb', hdr: false, forcedColors: false },
    graphics: {
      vendor: 'Google Inc. (Intel)',
      renderer: RENDERER,
      canvasHash: device,
      canvasStable: true,
      canvasFlatBadPixels: 0,
      audioSum: 124.04347527516074,
      audioStable: true,
    },
    fonts: 'ffd2c7a1900f',
    engine: {
      evalLength: 33,
      errorMessage: "Cannot read properties of null (reading 'a')",
      math: '5f1c0e9a77b24d10',
    },
    time: { zone: 'Europe/Berlin', offsetMinutes: 60, clockStepMs: 0.1 },
    tells: { globals: [], cdp: false, notificationMismatch: false, patched: [], processType: null },
    input: { moves: 214, downUpMs: 96, forceless: false, offGrid: null },
  };
}

/** The same machine driven by a script, without a window. */
export function headlessChrome(device?: string): SampleSignals {
  const sample = desktopChrome(device);
  const userAgent = USER_AGENT.replace('Chrome/', 'HeadlessChrome/');
  Object.assign(sample.page, { userAgent, webdriver: true, pluginCount: 0 });
  Object.assign(sample.worker, { userAgent });
  Object.assign(sample.frame, { userAgent, webdriver: true });
  sample.input = { moves: 0, downUpMs: null };
  return sample;
}
