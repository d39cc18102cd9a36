import { describe, expect, it } from 'vitest';
import { type AgentFacts, type OsFamily, osFamily, readAgent } from '../../../src/ingest/verdict/facts.ts';

const CHROME = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0';
const IOS = 'AppleWebKit/605.1.15 (KHTML, like Gecko)';

type Row = readonly [string, string, AgentFacts['engine'], AgentFacts['browser'], number, OsFamily, boolean];

const TABLE: readonly Row[] = [
  [
    'Chrome on Windows',
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${CHROME} Safari/537.36`,
    'blink',
    'chrome',
    142,
    'windows',
    false,
  ],
  [
    'Edge on Windows',
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${CHROME} Safari/537.36 Edg/142.0.0.0`,
    'blink',
    'chrome',
    142,
    'windows',
    false,
  ],
  [
    'Chrome on macOS',
    `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${CHROME} Safari/537.36`,
    'blink',
    'chrome',
    142,
    'macos',
    false,
  ],
  [
    'Chrome on Linux',
    `Mozilla/5.0 (X11; Linux x86_64) ${CHROME} Safari/537.36`,
    'blink',
    'chrome',
    142,
    'linux',
    false,
  ],
  [
    'Chrome on ChromeOS',
    `Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) ${CHROME} Safari/537.36`,
    'blink',
    'chrome',
    142,
    'chromeos',
    false,
  ],
  [
    'Chrome on Android',
    `Mozilla/5.0 (Linux; Android 10; K) ${CHROME} Mobile Safari/537.36`,
    'blink',
    'chrome',
    142,
    'android',
    true,
  ],
  [
    'Chrome on an Android tablet',
    `Mozilla/5.0 (Linux; Android 10; K) ${CHROME} Safari/537.36`,
    'blink',
    'chrome',
    142,
    'android',
    false,
  ],
  [
    'headless Chrome',
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/142.0.0.0 Safari/537.36',
    'blink',
    'chrome',
    142,
    'linux',
    false,
  ],
  [
    'Firefox on Windows',
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0',
    'gecko',
    'firefox',
    140,
    'windows',
    false,
  ],
  [
    'Firefox on Linux',
    'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
    'gecko',
    'firefox',
    140,
    'linux',
    false,
  ],
  [
    'Firefox on Android',
    'Mozilla/5.0 (Android 15; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0',
    'gecko',
    'firefox',
    140,
    'android',
    true,
  ],
  [
    'Safari on macOS',
    `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${IOS} Version/18.5 Safari/605.1.15`,
    'webkit',
    'safari',
    18,
    'macos',
    false,
  ],
  [
    'Safari on an iPhone',
    `Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) ${IOS} Version/18.5 Mobile/15E148 Safari/604.1`,
    'webkit',
    'safari',
    18,
    'ios',
    true,
  ],
  [
    'Safari on an iPad',
    `Mozilla/5.0 (iPad; CPU OS 16_6 like Mac OS X) ${IOS} Version/16.6 Mobile/15E148 Safari/604.1`,
    'webkit',
    'safari',
    16,
    'ios',
    true,
  ],
  [
    'Chrome on an iPhone is WebKit',
    `Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) ${IOS} CriOS/142.0.0.0 Mobile/15E148 Safari/604.1`,
    'webkit',
    'safari',
    0,
    'ios',
    true,
  ],
  [
    'Firefox on an iPhone is WebKit',
    `Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) ${IOS} FxiOS/140.0 Mobile/15E148 Safari/605.1.15`,
    'webkit',
    'safari',
    0,
    'ios',
    true,
  ],
  [
    'GNOME Web',
    `Mozilla/5.0 (X11; Linux x86_64) ${IOS} Version/18.0 Safari/605.1.15`,
    'webkit',
    'safari',
    18,
    'linux',
    false,
  ],
  ['curl', 'curl/8.11.0', 'unknown', 'other', 0, 'unknown', false],
  ['nothing', '', 'unknown', 'other', 0, 'unknown', false],
];

describe('readAgent', () => {
  it.each(TABLE)('%s', (_what, text, engine, browser, major, os, mobile) => {
    expect(readAgent(text)).toEqual({ engine, browser, major, os, mobile });
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
    ['Linux x86_64', 'linux'],
    ['Linux armv8l', 'linux'],
    ['Linux', 'linux'],
    ['Android', 'android'],
    ['Chrome OS', 'chromeos'],
    ['Chromium OS', 'chromeos'],
    ['Unknown', 'unknown'],
    ['', 'unknown'],
    [null, 'unknown'],
    [undefined, 'unknown'],
  ])('of %j is %s', (text, family) => {
    expect(osFamily(text)).toBe(family);
  });
});
