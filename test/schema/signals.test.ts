import { describe, expect, it } from 'vitest';
import { readSignals } from '../../src/schema/signals.ts';
import { createRawSignals } from '../support/make-signals.ts';

type Raw = Record<string, unknown>;
const GROUPS = 'page worker frame screen media graphics fonts engine time tells input'.split(' ');

const read = (change: Raw) => readSignals({ ...createRawSignals(), ...change });
const page = (change: Raw) => read({ page: { ...(createRawSignals()['page'] as Raw), ...change } });

describe('readSignals', () => {
  it('reads what a browser reports', () => {
    const { signals, malformed } = readSignals(createRawSignals());
    expect(malformed).toBe(false);
    expect(signals.screen?.width).toBe(2560);
    expect(signals.page?.uaData?.brands?.[0]?.brand).toBe('Chromium');
    expect(signals.fonts).toBe('0f3c');
  });

  it('answers null for a group that is missing or null, and finds nothing wrong with that', () => {
    for (const raw of [{}, Object.fromEntries(GROUPS.map((name) => [name, null]))]) {
      const { signals, malformed } = readSignals(raw);
      expect(malformed).toBe(false);
      expect(signals).toEqual(Object.fromEntries(GROUPS.map((name) => [name, null])));
    }
  });

  it('takes a group without fields, and fields that are null', () => {
    const { signals, malformed } = read({ page: {}, screen: { width: null }, graphics: {} });
    expect(malformed).toBe(false);
    expect(signals.page).toEqual({});
    expect(signals.screen).toEqual({ width: null });
  });

  it('leaves out fields and groups that it does not know', () => {
    const unknown = { page: { userAgent: 'x', secret: 'y' }, battery: { level: 1 }, collector: '2' };
    const { signals, malformed } = read(unknown);
    expect(malformed).toBe(false);
    expect(signals.page).toEqual({ userAgent: 'x' });
    expect(Object.keys(signals).sort()).toEqual([...GROUPS].sort());
  });

  it.each<[string, Raw]>([
    ['text for a number', { hardwareConcurrency: '8' }],
    ['text for a flag', { webdriver: 'true' }],
    ['a list for a group', { uaData: [] }],
    ['text for a list', { languages: 'en' }],
    ['a list of anything', { languages: ['en', 7] }],
    ['10,000 elements', { languages: Array(10_000).fill('en') }],
    ['10,000 brands', { uaData: { brands: Array(10_000).fill({ brand: 'a', version: '1' }) } }],
    ['brands without a version', { uaData: { brands: [{ brand: 'a' }] } }],
    ['endless text', { userAgent: 'a'.repeat(2049) }],
    ['Infinity by way of 1e400', { deviceMemory: JSON.parse('1e400') }],
  ])('gives up the group alone for %s', (_what, change) => {
    const { signals, malformed } = page(change);
    expect(malformed).toBe(true);
    expect(signals.page).toBeNull();
    expect(signals.screen?.width).toBe(2560);
  });

  it.each([7, 'page', []])('gives up a group that is %j', (value) => {
    const { signals, malformed } = read({ page: value });
    expect([signals.page, malformed]).toEqual([null, true]);
  });

  it('takes an odd pointer for badly typed, and fonts only as hex', () => {
    expect(read({ media: { pointer: 'laser' } })).toMatchObject({
      malformed: true,
      signals: { media: null },
    });
    expect(read({ tells: { globals: Array(10_000).fill('x') } }).signals.tells).toBeNull();
    for (const fonts of ['0F', 'xyz', 7, ['00'], 'a'.repeat(257)])
      expect(read({ fonts }), String(fonts)).toMatchObject({ malformed: true, signals: { fonts: null } });
    expect(read({ fonts: '' })).toMatchObject({ malformed: false, signals: { fonts: '' } });
  });

  it('reads own properties only', () => {
    const raw = JSON.parse('{"__proto__":{"page":{"webdriver":true}}}') as Raw;
    const { signals, malformed } = readSignals(raw);
    expect([signals.page, malformed]).toEqual([null, false]);
    expect(readSignals(Object.create({ page: { webdriver: true } }) as Raw).signals.page).toBeNull();
  });
});
