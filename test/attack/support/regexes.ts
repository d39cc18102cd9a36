import { type Expression, parseSync, Visitor } from 'oxc-parser';

/** The regular expressions of a module: literals, and those that are built from its own texts. */

export interface Found {
  readonly file: string;
  readonly regex: RegExp;
  /** Words that stand in it. */
  readonly literals: readonly string[];
}

/** From the paths of our own routes, where each parameter is `[^/]+`. */
const COMPUTED = new Set(['src/ops/metrics/route-label.ts']);

/** @throws {Error} when one is computed: then nobody can tell what it is */
export function findRegexes(file: string, source: string): Found[] {
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
