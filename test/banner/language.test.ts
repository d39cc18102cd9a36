import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readConfig } from '../../src/banner/config.ts';
import { directionOf, pickLanguage } from '../../src/banner/html-tag.ts';
import { createConfig, createPurpose } from './support.ts';

beforeAll(() => void vi.stubGlobal('LANGUAGES', 'ar de en pt'));
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
  ])('of %j is %s', (languages, tag, code) => {
    expect(pickLanguage(languages)).toEqual({ tag, code });
  });

  it('runs from right to left where it does', () => {
    expect(['ar', 'he', 'de'].map(directionOf)).toEqual(['rtl', 'rtl', 'ltr']);
  });
});

describe('what the server says', () => {
  it('is taken whole or not at all', () => {
    expect(readConfig(createConfig())).toEqual(createConfig());
    const { siteName: _name, imprintUrl: _imprint, ...older } = createConfig();
    expect(readConfig(older)).toEqual(createConfig());
    const broken: readonly unknown[] = [
      null,
      [],
      {},
      { ...createConfig(), kid: 1 },
      { ...createConfig(), siteName: 1 },
      { ...createConfig(), gpc: 'no' },
      { ...createConfig(), policy: null },
      { ...createConfig(), policy: { version: 1, material: -1, url: '' } },
      { ...createConfig(), purposes: {} },
      { ...createConfig(), purposes: [null] },
      { ...createConfig(), purposes: [{ ...createPurpose(), gpc: 'maybe' }] },
      { ...createConfig(), purposes: [{ ...createPurpose(), ttlDays: '7' }] },
      { ...createConfig(), refusalDays: '183' },
    ];
    for (const value of broken) expect(readConfig(value)).toBeNull();
  });
});
