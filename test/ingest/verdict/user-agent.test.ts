import { describe, expect, it } from 'vitest';
import { type OsFamily, osFamily, readAgent } from '../../../src/ingest/verdict/facts.ts';

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
