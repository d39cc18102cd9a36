import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readConfig } from '../../src/banner/config.ts';
import { directionOf, pickLanguage } from '../../src/banner/language.ts';
import { makeConfig, makePurpose } from './support.ts';

beforeAll(() => void vi.stubGlobal('LANGUAGES', ['de', 'en', 'pt', 'ar']));
afterAll(() => void vi.unstubAllGlobals());

describe('the language', () => {
  it.each([
    [['de'], 'de', 'de'],
    [['DE-at'], 'DE-at', 'de'],
    [[null, undefined, '', 'pt-BR'], 'pt-BR', 'pt'],
    [['tlh', 'xx-YY', 'de-CH'], 'de-CH', 'de'],
    [['de_DE', 'pt'], 'pt', 'pt'],
    [['de-', 'en'], 'de', 'de'],
    [['deutsch'], 'en', 'en'],
    [[], 'en', 'en'],
  ])('of %j is %s', (wanted, tag, code) => {
    expect(pickLanguage(wanted)).toEqual({ tag, code });
  });

  it('runs from right to left where it does', () => {
    expect(['ar', 'he', 'de'].map(directionOf)).toEqual(['rtl', 'rtl', 'ltr']);
  });
});

describe('what the server says', () => {
  it('is taken whole or not at all', () => {
    expect(readConfig(makeConfig())).toEqual(makeConfig());
    const broken: readonly unknown[] = [
      null,
      [],
      {},
      { ...makeConfig(), kid: 1 },
      { ...makeConfig(), gpc: 'no' },
      { ...makeConfig(), policy: null },
      { ...makeConfig(), policy: { version: 1, material: -1, url: '' } },
      { ...makeConfig(), purposes: {} },
      { ...makeConfig(), purposes: [null] },
      { ...makeConfig(), purposes: [{ ...makePurpose(), gpc: 'maybe' }] },
      { ...makeConfig(), purposes: [{ ...makePurpose(), ttlDays: '7' }] },
    ];
    for (const value of broken) expect(readConfig(value)).toBeNull();
  });
});
