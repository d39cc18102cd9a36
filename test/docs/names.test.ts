import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Comment, parseSync, Visitor } from 'oxc-parser';
import { describe, expect, it } from 'vitest';
import { readPage, root } from './prose.ts';

/** docs/style.md: names and comments that need no second reading. */

/** They say nothing of a value: each needs its noun, or its verb an object. */
const NO_NAMES = new Set(
  `told said rides casts deaf wrong soon turned going least taken gone kept held asked made begun ended lost left late own
   others some none more most what why how where whose same wanted meant owed fits waits alone past fresh stale dirty sent written
   set spent used far long short few many`.split(/\s+/),
);

/** A comment that begins with one of these is a relative clause without a subject. */
const NO_SUBJECT =
  /^(?:What|Of|By|As|Where|Whose|Those|Theirs|Told|Also|The same|How|For|Which|Whether|Who)\b/;
const MAX_LINES = 3;
/** The `lineWidth` of biome.json, whose formatter leaves comments as they are. */
const MAX_COLUMNS = 110;
const SOURCE =
  /https?:|RFC|\.(?:org|com|dev)\b|[Cc]ontract|[Ii]nterface|ADR|[Ss]ection|GDPR|[Aa]rticle|\(\d{4}\)|docs\//;

/** Folders in which every file was read as a newcomer reads it. */
const FOLDERS = [
  ...['src', 'test', 'migrations', 'bench', 'bin', 'packaging', '.ci'],
  ...['sdk/node/src', 'sdk/node/test', 'sdk/conformance'],
];
const listSources = (room: string): string[] =>
  readdirSync(join(root, room), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:tsx?|m?js)$/.test(name) && !/\.d\.ts$/.test(name))
    .map((name) => join(room, name));
const sources = FOLDERS.flatMap(listSources);

/** A node of a pattern, with what may be in it. */
interface Node extends Readonly<Record<'left' | 'argument' | 'value' | 'properties' | 'elements', unknown>> {
  readonly type: string;
  readonly name?: string;
}

/** The names that a pattern binds. */
function boundNames(pattern: Node | null | undefined): string[] {
  if (!pattern) return [];
  if (pattern.type === 'Identifier') return [pattern.name ?? ''];
  const inner = [pattern.left, pattern.argument, pattern.value, pattern.properties, pattern.elements].flat();
  return (inner as (Node | undefined)[]).flatMap((part) => boundNames(part));
}

interface Parsed {
  /** Functions, variables and parameters. */
  readonly names: readonly string[];
  readonly comments: readonly Comment[];
}

function parse(name: string, source: string): Parsed {
  const { program, comments } = parseSync(name, source);
  const names: string[] = [];
  const add = (...patterns: unknown[]): void => {
    names.push(...patterns.flatMap((pattern) => boundNames(pattern as Node)));
  };
  new Visitor({
    FunctionDeclaration: (node) => add(node.id, ...node.params),
    FunctionExpression: (node) => add(...node.params),
    ArrowFunctionExpression: (node) => add(...node.params),
    VariableDeclarator: (node) => add(node.id),
  }).visit(program);
  return { names, comments };
}

const parsedFiles = new Map<string, Parsed>();
/** Parses each file once, although several rules look at it. */
function parsedOf(name: string, source: string): Parsed {
  const parsed = parsedFiles.get(source) ?? parse(name, source);
  parsedFiles.set(source, parsed);
  return parsed;
}

const declaredNames = (name: string, source: string): readonly string[] => parsedOf(name, source).names;

/** Each comment of a file without its stars; lines of `//` that follow one another are one comment. */
function commentsOf(name: string, source: string): string[] {
  const texts: string[] = [];
  let previous: { type: string; end: number } | undefined;
  for (const comment of parsedOf(name, source).comments) {
    const text = comment.value
      .replace(/^\*+/, '')
      .replace(/^\s*\* ?/gm, '')
      .trim();
    const follows =
      comment.type === 'Line' &&
      previous?.type === 'Line' &&
      /^\s*$/.test(source.slice(previous.end, comment.start));
    if (follows) texts.push(`${texts.pop()}\n${text}`);
    else texts.push(text);
    previous = comment;
  }
  return texts;
}

/** Lines before the first tag. */
const proseLines = (comment: string): number =>
  (comment.split(/^@/m)[0] ?? '').split('\n').filter((line) => line.trim() !== '').length;

const faultsIn = (find: (name: string, source: string) => readonly string[]): string[] =>
  sources.flatMap((file) => find(file, readPage(file)).map((fault) => `${file}: ${fault}`));

describe('names and comments', () => {
  it('no declared name is a bare participle, adjective or question', () => {
    expect(
      declaredNames('a.ts', 'const { gone, kept: [told] } = x; function f(said, { a: wrong = 1 }) {}'),
    ).toEqual([...['gone', 'told', 'f', 'said', 'wrong']]);
    expect(faultsIn((...file) => declaredNames(...file).filter((name) => NO_NAMES.has(name)))).toEqual([]);
  });

  it('a factory is called create…', () => {
    const isMake = (name: string): boolean => /^make[A-Z]/.test(name);
    // The agent's public name, documented for integrators.
    expect([
      ...new Set(faultsIn((...file) => declaredNames(...file).filter(isMake)).map((f) => f.split(': ')[1])),
    ]).toEqual(['makePlaintext']);
  });

  it('each comment has a subject', () => {
    expect(commentsOf('a.ts', '// Of a day.\n// Two lines.\n/** What it is. */')).toEqual([
      'Of a day.\nTwo lines.',
      'What it is.',
    ]);
    expect(faultsIn((...file) => commentsOf(...file).filter((comment) => NO_SUBJECT.test(comment)))).toEqual(
      [],
    );
  });

  it('a comment names the class of an error, and one of more than three lines its source', () => {
    const isBare = (comment: string): boolean =>
      /@throws (?!\{)/.test(comment) || (proseLines(comment) > MAX_LINES && !SOURCE.test(comment));
    expect(faultsIn((...file) => commentsOf(...file).filter(isBare))).toEqual([]);
  });

  it('no comment of src/ is wider than the code; only a line with an address may be', () => {
    const wideLines = (name: string, source: string): string[] =>
      parsedOf(name, source).comments.flatMap(({ start, end }) =>
        source
          .slice(source.lastIndexOf('\n', start) + 1, end)
          .split('\n')
          .filter((line) => line.length > MAX_COLUMNS && !/https?:|biome-ignore/.test(line)),
      );
    expect(wideLines('a.ts', `// ${'a'.repeat(107)}\n  // ${'b'.repeat(106)}`)).toHaveLength(1);
    const found = listSources('src').flatMap((file) =>
      wideLines(file, readPage(file)).map((line) => `${file}: ${line}`),
    );
    expect(found).toEqual([]);
  });

  it('two exported types never share a name', () => {
    const files = new Map<string, string[]>();
    // The browser's leaves have types of their own: they import nothing of the server.
    const server = listSources('src').filter((file) => !/^src\/(?:agent|banner|browser)\//.test(file));
    for (const file of server) {
      for (const [, name = ''] of readPage(file).matchAll(
        /^export (?:interface|type|(?:abstract )?class) (\w+)/gm,
      ))
        files.set(name, [...(files.get(name) ?? []), file]);
    }
    expect([...files].filter(([, found]) => found.length > 1)).toEqual([]);
  });
});
