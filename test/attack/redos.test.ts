import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { announcedSeed } from '../support/make.ts';
import { fc } from '../support/property.ts';
import { type Found, findRegexes } from './support/regexes.ts';
import { FULL, sized, tell } from './support/size.ts';

/**
 * Every regular expression of the server against strings made to be hard for it: pieces of what it matches, repeated.
 * Time has to grow with the length; where it grows faster, the length has a limit, and the time at the limit counts.
 */

/** What the browser and the operator run on their own input. */
const NOT_REACHED = /^src\/(?:agent|banner|cli|ops\/doctor)\//;

/** Grows faster than its input, whose length is limited: by whom, and the most characters. */
const LIMITED: Readonly<Record<string, { readonly limit: number; readonly by: string }>> = {
  [String.raw`src/ops/metrics/route-label.ts /\{[^}]+\}/g`]: { limit: 200, by: 'our own routes' },
  [String.raw`src/ingest/stable.ts /,?\s*(?:\b(?:Direct3D|D3D|OpenGL|Vulkan|vs_|ps_)|Unspecified Version\b).*$/i`]:
    { limit: 2048, by: 'schema/signals' },
  [String.raw`src/ingest/stable.ts /Vulkan [\d.]+ \((.+?)(?: \(0x[0-9a-f]+\))?\)/i`]: {
    limit: 2048,
    by: 'schema/signals',
  },
  [String.raw`src/schema/setting-kinds.ts /\/+$/`]: { limit: 2048, by: 'the operator' },
};

const SHORT = 4096;
const LONG = 4 * SHORT;
/** Four times the length is four times the time, or sixteen times where it is quadratic. */
const MAX_RATIO = 9;
/** Below this a clock tells nothing. */
const FLOOR_MS = 2;
const EARLY = [18, 22, 26, 64, 256, 1024];
const EARLY_MS = 15;
/** A hot path may lose so much to one string. */
const MAX_MS = 20;

/** At CI size the same strings each time; at full size others, and more of them. */
const seed = FULL ? Number(announcedSeed('redos')) % 2 ** 31 : 20_261_120;
const ROUGH = [
  'a',
  ' ',
  '\t',
  '0',
  '%',
  '"',
  '(',
  ')',
  '.',
  '-',
  '/',
  ';',
  ':',
  '[',
  ']',
  ',',
  '=',
  '\\',
  '\n',
  'é',
  ';for="',
];

const keyOf = ({ file, regex }: Found): string => `${file} ${regex}`;

/** Strings that it matches; what fast-check cannot read (look-ahead) gives none. */
function samplesOf({ regex }: Found): string[] {
  try {
    const flags = regex.flags.replace(/[gy]/g, '');
    return fc.sample(fc.stringMatching(new RegExp(regex.source, flags), { maxLength: 40 }), {
      numRuns: sized(3, 40),
      seed,
    });
  } catch {
    return [];
  }
}

interface Hard {
  readonly before: string;
  readonly pump: string;
  readonly after: string;
}

function* hardStrings(found: Found): Generator<Hard> {
  for (const pump of ROUGH) for (const after of ['', '\u0001']) yield { before: '', pump, after };
  for (const sample of [...samplesOf(found), ...found.literals]) {
    const text = sample.slice(0, 24);
    for (let from = 0; from < text.length; from += 1) {
      for (const to of new Set([from + 1, from + 2, text.length - 1, text.length])) {
        const pump = text.slice(from, to);
        if (pump !== '') yield { before: text.slice(0, from), pump, after: '\u0001' };
      }
    }
  }
}

const build = ({ before, pump, after }: Hard, length: number): string =>
  before + pump.repeat(Math.ceil(length / pump.length)) + after;

function timeOf({ regex }: Found, text: string, tries = 1): number {
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < tries; i += 1) {
    regex.lastIndex = 0;
    const begun = performance.now();
    // A global one is used to replace all there is.
    if (regex.global) text.replace(regex, '');
    else regex.test(text);
    best = Math.min(best, performance.now() - begun);
  }
  return best;
}

/** Null: in proportion. */
function faultOf(found: Found, hard: Hard): string | null {
  // An exponential one would never end at the full length.
  const early = EARLY.find((length) => timeOf(found, build(hard, length)) > EARLY_MS);
  if (early !== undefined && timeOf(found, build(hard, early), 3) > EARLY_MS)
    return `${keyOf(found)}: explodes at ${early} characters of ${JSON.stringify(hard)}`;
  const [short, long] = [build(hard, SHORT), build(hard, LONG)];
  if (timeOf(found, long) < FLOOR_MS || timeOf(found, long, 3) < FLOOR_MS) return null;
  const ratio = timeOf(found, long, 5) / timeOf(found, short, 5);
  if (ratio < MAX_RATIO) return null;
  return `${keyOf(found)}: ${ratio.toFixed(0)} times for four times ${JSON.stringify(hard)}`;
}

const files = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .map((name) => `src/${name}`)
  .filter((file) => file.endsWith('.ts') && !NOT_REACHED.test(file));
const all = files.sort().flatMap((file) => findRegexes(file, readFileSync(file, 'utf8')));

describe('regular expressions', () => {
  it(
    `of ${files.length} files: ${all.length}, whose time grows as their input does, or whose input is short`,
    () => {
      let tried = 0;
      const faults: string[] = [];
      const limited = new Set<string>();
      for (const found of all) {
        const limit = LIMITED[keyOf(found)];
        for (const hard of hardStrings(found)) {
          tried += 1;
          if (limit) {
            const ms = timeOf(found, build(hard, limit.limit), 3);
            if (ms > MAX_MS)
              faults.push(`${keyOf(found)}: ${ms.toFixed(1)} ms at ${limit.limit} (${limit.by})`);
            limited.add(keyOf(found));
            continue;
          }
          const fault = faultOf(found, hard);
          if (fault === null) continue;
          faults.push(fault);
          break;
        }
      }
      tell(
        'redos',
        `${all.length} regular expressions, ${tried} hard strings, ${limited.size} by the limit of their input`,
      );
      expect(faults).toEqual([]);
      // The list is of what there is.
      expect([...limited].sort()).toEqual(Object.keys(LIMITED).sort());
    },
    sized(60_000, 1_200_000),
  );

  it.each([/(a+)+$/, /^(\w|\d)*$/, /\s+$/, /x.*y.*z/])(
    '%s, which is known to be slow, is caught',
    (regex) => {
      const found: Found = { file: 'test', regex, literals: ['xy', 'aaa', '   '] };
      const slow = [...hardStrings(found)].some((hard) => faultOf(found, hard) !== null);
      expect(slow).toBe(true);
    },
  );
});
