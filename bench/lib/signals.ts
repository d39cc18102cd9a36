/** Random devices and the signals of their browsers: as large as real ones, and each with its own identity. */

export interface Device {
  readonly signals: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
}

type Random = () => number;

const VERSION = 141;
const GPUS = [
  'ANGLE (NVIDIA, NVIDIA GeForce RTX 3060 (0x00002503) Direct3D11 vs_5_0 ps_5_0, D3D11)',
  'ANGLE (Intel, Intel(R) Iris(R) Xe Graphics (0x000046A6) Direct3D11 vs_5_0 ps_5_0, D3D11)',
  'ANGLE (AMD, AMD Radeon RX 6600 (0x000073FF) Direct3D11 vs_5_0 ps_5_0, D3D11)',
] as const;
const SCREENS = [
  [1920, 1080],
  [2560, 1440],
  [1536, 864],
  [1366, 768],
] as const;

function hex(random: Random, digits: number): string {
  return Array.from({ length: digits }, () => Math.floor(random() * 16).toString(16)).join('');
}

function pick<T>(random: Random, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)] as T;
}

function userAgent(): string {
  return `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${VERSION}.0.0.0 Safari/537.36`;
}

function brands(version: string): { brand: string; version: string }[] {
  return [
    { brand: 'Google Chrome', version },
    { brand: 'Not?A_Brand', version: version.includes('.') ? '8.0.0.0' : '8' },
    { brand: 'Chromium', version },
  ];
}

function uaData(): Record<string, unknown> {
  return {
    brands: brands(String(VERSION)),
    mobile: false,
    platform: 'Windows',
    architecture: 'x86',
    bitness: '64',
    model: '',
    platformVersion: '19.0.0',
    fullVersionList: brands(`${VERSION}.0.7390.55`),
  };
}

function page(random: Random): Record<string, unknown> {
  return {
    userAgent: userAgent(),
    appVersion: userAgent().replace('Mozilla/', ''),
    platform: 'Win32',
    vendor: 'Google Inc.',
    language: 'de-DE',
    languages: ['de-DE', 'de', 'en-US', 'en'],
    webdriver: false,
    hardwareConcurrency: pick(random, [4, 8, 12, 16]),
    deviceMemory: 8,
    maxTouchPoints: 0,
    pluginCount: 5,
    pdfViewer: true,
    cookies: true,
    brave: false,
    chromeObject: true,
    gpc: false,
    uaData: uaData(),
  };
}

function screen(random: Random): Record<string, unknown> {
  const [width, height] = pick(random, SCREENS);
  return {
    width,
    height,
    availWidth: width,
    availHeight: height - 48,
    innerWidth: width,
    innerHeight: height - 175,
    outerWidth: width,
    outerHeight: height - 48,
    colorDepth: 24,
    dpr: 1,
  };
}

/** Creates an ordinary Chrome on Windows with all groups of signals, for which no rule fires. */
export function createDevice(random: Random): Device {
  const renderer = pick(random, GPUS);
  const main = page(random);
  const signals = {
    collector: '1',
    page: main,
    worker: {
      userAgent: userAgent(),
      platform: 'Win32',
      languages: main['languages'],
      hardwareConcurrency: main['hardwareConcurrency'],
      webdriver: false,
      renderer,
      uaData: { brands: brands(String(VERSION)), platform: 'Windows' },
      cdp: false,
    },
    frame: { webdriver: false, platform: 'Win32', userAgent: userAgent(), srcdocPreattached: false },
    screen: screen(random),
    media: { pointer: 'fine', hover: true, colorGamut: 'srgb', hdr: false, forcedColors: false },
    graphics: {
      vendor: 'Google Inc. (NVIDIA)',
      renderer,
      canvasHash: hex(random, 32),
      canvasStable: true,
      canvasFlatBadPixels: 0,
      audioSum: 124 + random() / 10,
      audioStable: true,
    },
    fonts: `fff${hex(random, 5)}00000000`,
    engine: {
      evalLength: 33,
      errorMessage: "Cannot read properties of null (reading 'x')",
      math: '6f1c0a52d4f1b7a9c2c7d8e3b1a05f64',
    },
    time: { zone: 'Europe/Berlin', offsetMinutes: -60, clockStepMs: 0.1 },
    tells: { globals: [], cdp: false, notificationMismatch: false, patched: [], processType: null },
    input: {
      moves: Math.floor(random() * 200),
      downUpMs: 40 + Math.floor(random() * 80),
      forceless: false,
      offGrid: null,
    },
  };
  return { signals, headers: browserHeaders() };
}

function browserHeaders(): Record<string, string> {
  return {
    'User-Agent': userAgent(),
    'sec-ch-ua': `"Google Chrome";v="${VERSION}", "Not?A_Brand";v="8", "Chromium";v="${VERSION}"`,
    'sec-ch-ua-mobile': '?0',
    'sec-ch-ua-platform': '"Windows"',
    'Content-Type': 'application/json',
    Accept: '*/*',
    'Sec-Fetch-Site': 'same-site',
    'Sec-Fetch-Mode': 'cors',
    'Sec-Fetch-Dest': 'empty',
    'Accept-Encoding': 'gzip, deflate, br, zstd',
    'Accept-Language': 'de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7',
  };
}
