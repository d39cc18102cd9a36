import { parseSync } from 'oxc-parser';

/** What a module imports, exports by default and touches of the world, read from its source. */

const IMPURE_CALLS = new Set(['fetch', 'setTimeout', 'setInterval', 'setImmediate', 'Date']);
const IMPURE_MEMBERS = /^(?:Date\.now|Math\.random|performance\.now|process\.\w+|crypto\.\w+)$/;

interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

export interface Import {
  /** Null: computed, and nobody can tell. */
  readonly target: string | null;
  readonly typeOnly: boolean;
  readonly names: readonly string[];
}

export interface Module {
  readonly imports: readonly Import[];
  readonly impure: readonly string[];
  readonly readsEnvironment: boolean;
  readonly defaultExport: boolean;
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

export function readModule(file: string, source: string): Module {
  const { program, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file} does not parse: ${errors[0]?.message}`);
  const nodes = [...nodesOf(program.body)];
  return {
    imports: nodes.map(importOf).filter((found) => found !== null),
    impure: nodes.map(impurityOf).filter((found) => found !== null),
    readsEnvironment: nodes.some((node) => memberOf(node) === 'process.env'),
    defaultExport: nodes.some((node) => node.type === 'ExportDefaultDeclaration'),
  };
}
