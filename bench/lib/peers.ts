import type { DrawnRow } from './svg.ts';

/** The last run of bench/banner, which needs the other programs: medians of bench/README.md, its tag with an empty cache. */
export const BANNER: DrawnRow = {
  name: 'banner in sight, empty cache',
  value: 374,
  unit: 'ms',
  goal: null,
  details: {},
  peers: [
    { name: 'vanilla-cookieconsent 3.1.0', value: 447 },
    { name: 'klaro 0.7.22', value: 624 },
    { name: 'c15t 2.2.1 (React, offline)', value: 1033 },
  ],
};
