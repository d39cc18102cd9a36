import { readdirSync, readFileSync } from 'node:fs';
import { Script } from 'node:vm';
import { type Expression, parseSync, Visitor } from 'oxc-parser';
import { describe, expect, it } from 'vitest';
import { announcedSeed } from '../support/make.ts';
import { fc } from '../support/property.ts';
import { sized } from '../support/sized.ts';

/**
 * Every regular expression of the server against strings made to be hard for it: pieces of what it matches, repeated. On so long a
 * text one whose time grows with the length is done in milliseconds, and one whose time grows faster takes minutes, or for ever.
 */

/** The browser and the operator run these on their own input. */
const NOT_REACHED = /^src\/(?:agent|banner|browser|cli|ops\/doctor)\//;

/** Grows faster than its input, whose length is limited: by whom, and the most characters. */
const LIMITED: Readonly<Record<string, { readonly limit: number; readonly by: string }>> = {
  [String.raw`src/ops/metrics/route-label.ts /\{[^}]+\}/g`]: { limit: 200, by: 'our own routes' },
  [String.raw`src/ingest/verdict/identity.ts /,?\s*(?:\b(?:Direct3D|D3D|OpenGL|Vulkan|vs_|ps_)|Unspecified Version\b).*$/i`]:
    { limit: 2048, by: 'schema/signals' },
  [String.raw`src/ingest/verdict/identity.ts /Vulkan [\d.]+ \((.+?)(?: \(0x[0-9a-f]+\))?\)/i`]: {
    limit: 2048,
    by: 'schema/signals',
  },
  [String.raw`src/schema/settings.ts /\/+$/`]: { limit: 2048, by: 'the operator' },
};

/** A regular expression of a module: a literal, or one that is built from its own texts. */
interface Found {
  readonly file: string;
  readonly regex: RegExp;
  /** Words that stand in it. */
  readonly literals: readonly string[];
}

/** From the paths of our own routes, where each parameter is `[^/]+`. */
const COMPUTED = new Set(['src/ops/metrics/route-label.ts']);

/** @throws {Error} when one is computed: then nobody can tell what it is */
function findRegexes(file: string, source: string): Found[] {
  const { program, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file} does not parse`);
  const found: Found[] = [];
  const texts = new Map<string, string>();

  function textOf(node: Expression | null | undefined): string | null {
    if (node?.type === 'Identifier') return texts.get(node.name) ?? null;
    if (node?.type === 'Literal') return typeof node.value === 'string' ? node.value : null;
    if (node?.type !== 'TemplateLiteral') return null;
    const values = node.expressions.map(textOf);
    if (values.includes(null)) return null;
    return node.quasis.map(({ value }, i) => (value.cooked ?? '') + (values[i] ?? '')).join('');
  }
  const add = (pattern: string, flags: string): void => {
    const literals = pattern.match(/[A-Za-z][A-Za-z ]{2,}/g) ?? [];
    found.push({ file, regex: new RegExp(pattern, flags), literals });
  };

  new Visitor({
    VariableDeclarator({ id, init }) {
      const text = textOf(init);
      if (id.type === 'Identifier' && text !== null) texts.set(id.name, text);
    },
    Literal(node) {
      if ('regex' in node && node.regex) add(node.regex.pattern, node.regex.flags);
    },
    NewExpression({ callee, arguments: [first, second] }) {
      if (callee.type !== 'Identifier' || callee.name !== 'RegExp' || COMPUTED.has(file)) return;
      const pattern = textOf(first as Expression);
      if (pattern === null) throw new Error(`${file} computes a regular expression`);
      add(pattern, textOf(second as Expression | undefined) ?? '');
    },
  }).visit(program);
  return found;
}

const LENGTH = 262_144;
/** A thousand times what a quiet machine needs where time grows with the length. */
const GIVE_UP_MS = 20_000;

/** At CI size the same strings each time; at full size others, and more of them. */
const seed = sized('ATTACK', 20_261_120, Number(announcedSeed('redos')) % 2 ** 31);
const ROUGH = [...'a \t0%"().-/;:[],=\\\né', ';for="'];

const keyOf = ({ file, regex }: Found): string => `${file} ${regex}`;

/** Strings that it matches; what fast-check cannot read (look-ahead) gives none. */
function samplesOf({ regex }: Found): string[] {
  try {
    const flags = regex.flags.replace(/[gy]/g, '');
    return fc.sample(fc.stringMatching(new RegExp(regex.source, flags), { maxLength: 40 }), {
      numRuns: sized('ATTACK', 3, 40),
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

const match = new Script('regex.global ? text.replace(regex, "") : regex.test(text)');

/** Null when the match comes to an end. */
function faultOf(found: Found, hard: Hard, length = LENGTH, timeout = GIVE_UP_MS): string | null {
  const { regex } = found;
  regex.lastIndex = 0;
  try {
    match.runInNewContext({ regex, text: build(hard, length) }, { timeout });
    return null;
  } catch {
    return `${keyOf(found)}: no end within ${timeout} ms at ${length} characters of ${JSON.stringify(hard)}`;
  }
}

const files = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .map((name) => `src/${name}`)
  .filter((file) => file.endsWith('.ts') && !NOT_REACHED.test(file));
const all = files.sort().flatMap((file) => findRegexes(file, readFileSync(file, 'utf8')));

describe('regular expressions', () => {
  it(
    `of ${files.length} files: ${all.length}, whose time grows as their input does, or whose input is short`,
    () => {
      const faults: string[] = [];
      const limited = new Set<string>();
      for (const found of all) {
        const limit = LIMITED[keyOf(found)];
        if (limit) limited.add(keyOf(found));
        for (const hard of hardStrings(found)) {
          const fault = faultOf(found, hard, limit?.limit);
          if (fault === null) continue;
          faults.push(fault);
          break;
        }
      }
      expect(faults).toEqual([]);
      // The list is of what there is.
      expect([...limited].sort()).toEqual(Object.keys(LIMITED).sort());
    },
    sized('ATTACK', 600_000, 1_200_000),
  );

  it.each([/(a+)+$/, /^(\w|\d)*$/, /\s+$/, /x.*y.*z/])(
    '%s, which is known to be slow, is caught',
    (regex) => {
      const found: Found = { file: 'test', regex, literals: ['xy', 'aaa', '   '] };
      const slow = [...hardStrings(found)].some((hard) => faultOf(found, hard, LENGTH, 500) !== null);
      expect(slow).toBe(true);
    },
  );
});
