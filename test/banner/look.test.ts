import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const views = new URL('../../views/', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, views), 'utf8');

type Rgb = readonly [red: number, green: number, blue: number];
type Scheme = 'light' | 'dark';

const tokens = new Map(
  [...read('assets/tokens.css').matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map(
    ([, name, light, dark]) => [name!, { light: light!, dark: dark! }] as const,
  ),
);

function linear(channel: number): number {
  return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
}

function rgb(name: string, scheme: Scheme): Rgb {
  const hex = Number.parseInt(tokens.get(name)![scheme].slice(1), 16);
  return [linear((hex >> 16) / 255), linear(((hex >> 8) & 255) / 255), linear((hex & 255) / 255)];
}

/** WCAG 2 relative luminance of linear light. */
const luminance = ([r, g, b]: Rgb): number => 0.2126 * r + 0.7152 * g + 0.0722 * b;

function contrast(a: string, b: string, scheme: Scheme): number {
  const [high, low] = [luminance(rgb(a, scheme)), luminance(rgb(b, scheme))].sort((x, y) => y - x);
  return (high! + 0.05) / (low! + 0.05);
}

/** Machado, Oliveira and Fernandes 2009, severity 1. */
const VISIONS: Readonly<Record<string, readonly Rgb[]>> = {
  full: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

const times = (rows: readonly Rgb[], [r, g, b]: Rgb): Rgb =>
  rows.map(([x, y, z]) => Math.min(1, Math.max(0, x * r + y * g + z * b))) as unknown as Rgb;

/** CIE L*a*b* under D65. */
function lab(color: Rgb): Rgb {
  const [x, y, z] = times(
    [
      [0.4124 / 0.9505, 0.3576 / 0.9505, 0.1805 / 0.9505],
      [0.2126, 0.7152, 0.0722],
      [0.0193 / 1.089, 0.1192 / 1.089, 0.9505 / 1.089],
    ],
    color,
  ).map((t) => (t > 216 / 24389 ? Math.cbrt(t) : (24389 / 27 / 116) * t + 16 / 116)) as unknown as Rgb;
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

function distance(a: string, b: string, scheme: Scheme, vision: string): number {
  const [first, second] = [a, b].map((name) => lab(times(VISIONS[vision]!, rgb(name, scheme))));
  return Math.hypot(...first!.map((value, at) => value - second![at]!));
}

const CLASSES = ['human', 'declared-agent', 'undeclared-automation', 'unknown'].map(
  (name) => `class-${name}`,
);
const PAIRS = CLASSES.flatMap((a, at) => CLASSES.slice(at + 1).map((b) => [a, b] as const));
const SCHEMES = ['light', 'dark'] as const;

/** Each text, and each edge of a control, on every ground where a page or a part shows it. */
const FLOORS: readonly (readonly [token: string, floor: number, grounds: readonly string[]])[] = [
  ['ink', 7, ['paper', 'surface', 'sunken']],
  ['ink-2', 4.5, ['paper', 'surface', 'sunken']],
  ['ink-3', 4.5, ['paper', 'surface', 'sunken']],
  ['control', 3, ['paper', 'surface', 'sunken']],
  ['accent', 4.5, ['paper', 'surface', 'sunken', 'accent-soft']],
  ['on-accent', 4.5, ['accent']],
  ['warn', 4.5, ['paper', 'surface', 'sunken', 'warn-soft']],
  ['late', 4.5, ['paper', 'surface', 'sunken', 'late-soft']],
  ['on-late', 4.5, ['late']],
  ['done', 4.5, ['paper', 'surface', 'done-soft']],
  ['ink', 7, ['done-soft']],
  ...CLASSES.map((name) => [name, 4.5, ['paper', 'surface', `${name}-soft`]] as const),
];
const CONTRASTS = FLOORS.flatMap(([token, floor, grounds]) =>
  grounds.map((ground) => [token, ground, floor] as const),
);

/** In CIE76: what is below is easily taken for the same at a glance. */
const MIN_DISTANCE = 20;

it('every colour of tokens.css has a light and a dark value, and a floor or a ground in this file', () => {
  const shown = new Set([...FLOORS.flatMap(([token, , grounds]) => [token, ...grounds]), 'line']);
  const colours = [...read('assets/tokens.css').matchAll(/^ {2}--([\w-]+): [^;]*#/gm)].map(
    ([, name]) => name!,
  );
  expect([...tokens.keys()].filter((name) => !shown.has(name))).toEqual([]);
  expect(colours.filter((name) => !tokens.has(name))).toEqual([]);
});

describe.each(SCHEMES)('the tokens in %s', (scheme) => {
  it.each(CONTRASTS)('%s on %s has a contrast of at least %d', (token, ground, floor) => {
    expect(contrast(token, ground, scheme)).toBeGreaterThanOrEqual(floor);
  });

  it.each(PAIRS)('%s and %s differ for every colour vision', (a, b) => {
    const near = Object.keys(VISIONS).map((vision) => [vision, distance(a, b, scheme, vision)] as const);
    expect(near.filter(([, distance]) => distance < MIN_DISTANCE)).toEqual([]);
  });
});

describe('the banner has the same tokens', () => {
  const css = readFileSync(new URL('../../src/banner/view/banner.css', import.meta.url), 'utf8');
  const plain = new Map(
    [...css.matchAll(/var\(--gpd-([\w-]+), (#\w{6})\)/g)].map(([, name, hex]) => [name, hex]),
  );
  const both = [...css.matchAll(/var\(--gpd-([\w-]+), light-dark\((#\w{6}), (#\w{6})\)\)/g)];
  /** It floats, so its paper is a surface; what it warns of is a refusal. */
  const NAMES: Readonly<Record<string, string>> = { paper: 'surface', warn: 'late' };

  it('in all its colours', () => {
    expect(both.map(([, name]) => name!).sort()).toEqual([
      'accent',
      'control',
      'ink',
      'ink-2',
      'line',
      'paper',
      'warn',
    ]);
  });

  it.each(both.map(([, name, light, dark]) => [name!, light!, dark!] as const))('%s', (name, light, dark) => {
    expect({ light, dark }).toEqual(tokens.get(NAMES[name] ?? name));
    // Browsers without light-dark() read the plain value.
    expect(plain.get(name)).toBe(light);
  });

  it('and its message, which is text, has the contrast of text', () => {
    for (const scheme of SCHEMES) expect(contrast('late', 'surface', scheme)).toBeGreaterThanOrEqual(7);
  });
});
