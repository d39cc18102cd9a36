import { attempt, flag, type Group } from './read.ts';

const matches = (query: string): boolean => matchMedia(`(${query})`).matches;

/** The first value that the media feature matches. */
function firstOf<const V extends string>(feature: string, values: readonly V[]): V | null {
  return attempt(() => values.find((value) => matches(`${feature}: ${value}`)) ?? null);
}

export function collectMedia(): Group<'media'> {
  return {
    pointer: firstOf('pointer', ['fine', 'coarse', 'none']),
    hover: flag(() => matches('hover: hover')),
    colorGamut: firstOf('color-gamut', ['rec2020', 'p3', 'srgb']),
    hdr: flag(() => matches('dynamic-range: high')),
    forcedColors: flag(() => matches('forced-colors: active')),
  };
}
