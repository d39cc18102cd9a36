import { describe, expect, it } from 'vitest';
import { hasGpcHeader, headerText, readNetwork } from '../../src/http/request.ts';

describe('readNetwork', () => {
  it('reads the headers that rules look at, and null for what was not sent', () => {
    const headers = {
      'user-agent': 'UA',
      'accept-language': 'en',
      'sec-ch-ua': '"Chromium"',
      'sec-ch-ua-platform': '"Linux"',
      'sec-fetch-site': 'cross-site',
      cookie: 'gp_session=secret',
    };
    expect(readNetwork({ headers, https: true, ja4: 't13d1516h2_x_y', hosting: false })).toEqual({
      userAgent: 'UA',
      acceptLanguage: 'en',
      secChUa: '"Chromium"',
      secChUaPlatform: '"Linux"',
      secFetchSite: 'cross-site',
      ja4: 't13d1516h2_x_y',
      https: true,
      hosting: false,
    });
    const nothing = readNetwork({ headers: {}, https: false, ja4: null, hosting: null });
    expect(Object.values(nothing)).toEqual([null, null, null, null, null, null, false, null]);
  });

  it('joins a header that was sent twice', () => {
    expect(headerText({ 'sec-ch-ua': ['"a"', '"b"'] }, 'sec-ch-ua')).toBe('"a", "b"');
  });
});

describe('hasGpcHeader', () => {
  it.each([
    ['1', true],
    [' 1 ', true],
    ['0', false],
    ['true', false],
    ['11', false],
    ['11, 0', false],
    // Several headers, as Node joins them.
    ['1, 1', true],
    ['0, 1', true],
    ['1,0', true],
    ['?1', false],
    ['', false],
    [undefined, false],
  ])('of %j is %s', (value, expected) => {
    expect(hasGpcHeader({ 'sec-gpc': value })).toBe(expected);
  });
});
