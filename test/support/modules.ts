import { parseSync } from 'oxc-parser';

/**
 * Reads from the source of a module its imports, default export,
 * queries, and uses of time, randomness and the environment.
 */

const IMPURE_CALLS = new Set(['fetch', 'setTimeout', 'setInterval', 'setImmediate', 'Date']);
const IMPURE_MEMBERS = /^(?:Date\.now|Math\.random|performance\.now|process\.\w+|crypto\.\w+)$/;

export interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

export interface Import {
  /** Null if the module name is computed at run time. */
  readonly target: string | null;
  readonly typeOnly: boolean;
  readonly names: readonly string[];
}

export interface Module {
  readonly imports: readonly Import[];
  readonly impure: readonly string[];
  readonly readsEnvironment: boolean;
  readonly defaultExport: boolean;
  /** Tables that are queried by name, also through a transaction: `tx('tenants')`. */
  readonly queries: readonly string[];
  readonly functions: readonly { readonly name: string; readonly lines: number }[];
}

function* nodesOf(value: unknown): Generator<Node> {
  if (Array.isArray(value)) {
    for (const item of value) yield* nodesOf(item);
  } else if (typeof value === 'object' && value !== null) {
    if (typeof (value as Node).type === 'string') yield value as Node;
    for (const child of Object.values(value)) yield* nodesOf(child);
  }
}

function nameOf(node: unknown): string {
  const { name } = (node ?? {}) as { name?: unknown };
  return typeof name === 'string' ? name : '';
}

function literal(node: unknown): string | null {
  const { type, value } = (node ?? {}) as { type?: string; value?: unknown };
  return type === 'Literal' && typeof value === 'string' ? value : null;
}

function importOf(node: Node): Import | null {
  const named = (list: unknown): string[] =>
    ((list ?? []) as { imported?: unknown; local?: unknown }[]).map((entry) =>
      nameOf(entry.imported ?? entry.local),
    );
  switch (node.type) {
    case 'ImportDeclaration': {
      const typeOnly = node['importKind'] === 'type';
      return { target: literal(node['source']), typeOnly, names: named(node['specifiers']) };
    }
    case 'ExportNamedDeclaration':
    case 'ExportAllDeclaration':
      if (!node['source']) return null;
      return {
        target: literal(node['source']),
        typeOnly: node['exportKind'] === 'type',
        names: named(node['specifiers']),
      };
    case 'ImportExpression':
      return { target: literal(node['source']), typeOnly: false, names: [] };
    case 'TSImportType':
      return { target: literal(node['source']), typeOnly: true, names: [] };
    case 'CallExpression': {
      if (nameOf(node['callee']) !== 'require') return null;
      return { target: literal((node['arguments'] as unknown[])[0]), typeOnly: false, names: [] };
    }
    default:
      return null;
  }
}

function memberOf(node: Node): string {
  return node.type === 'MemberExpression' ? `${nameOf(node['object'])}.${nameOf(node['property'])}` : '';
}

function impurityOf(node: Node): string | null {
  const member = memberOf(node);
  if (IMPURE_MEMBERS.test(member)) return member;
  const callee = nameOf(node['callee']);
  if (node.type === 'CallExpression' && IMPURE_CALLS.has(callee)) return `${callee}()`;
  const argumentless = ((node['arguments'] ?? []) as unknown[]).length === 0;
  return node.type === 'NewExpression' && callee === 'Date' && argumentless ? 'new Date()' : null;
}

/** Names of knex instances and transactions, which are called with the name of a table. */
const QUERY = /^(?:tx|trx|read|db|knex)$/;

function queryOf(node: Node): string | null {
  if (node.type !== 'CallExpression') return null;
  const callee = node['callee'] as Node;
  const name = callee.type === 'MemberExpression' ? nameOf(callee['property']) : nameOf(callee);
  const [first] = node['arguments'] as unknown[];
  const table = literal(first);
  if (name === 'raw') return `${name}(${table ?? '…'})`;
  return QUERY.test(name) && table !== null && /^\w+$/.test(table) ? `${name}('${table}')` : null;
}

const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']);

interface Lines {
  readonly at: (offset: number) => number;
}

function linesOf(source: string): Lines {
  const starts = [...source.matchAll(/\n/g)].map(({ index }) => index);
  const at = (offset: number): number => {
    let [low, high] = [0, starts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) < offset) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return { at };
}

/** A function has the name of its declaration, its variable or its property. */
function functionsOf(nodes: readonly Node[], source: string): Module['functions'] {
  const lines = linesOf(source);
  const names = new Map<unknown, string>();
  for (const node of nodes) {
    if (node.type === 'VariableDeclarator') names.set(node['init'], nameOf(node['id']));
    if (node.type === 'Property' || node.type === 'MethodDefinition')
      names.set(node['value'], nameOf(node['key']));
  }
  return nodes
    .filter(({ type }) => FUNCTIONS.has(type))
    .map((node) => ({
      name: nameOf(node['id']) || names.get(node) || '(anonymous)',
      lines: lines.at(node['end'] as number) - lines.at(node['start'] as number) + 1,
    }));
}

export function readModule(file: string, source: string): Module {
  const { program, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file} does not parse: ${errors[0]?.message}`);
  const nodes = [...nodesOf(program.body)];
  return {
    imports: nodes.map(importOf).filter((found) => found !== null),
    impure: nodes.map(impurityOf).filter((found) => found !== null),
    readsEnvironment: nodes.some((node) => memberOf(node) === 'process.env'),
    queries: nodes.map(queryOf).filter((found) => found !== null),
    functions: functionsOf(nodes, source),
    defaultExport: nodes.some((node) => node.type === 'ExportDefaultDeclaration'),
  };
}
