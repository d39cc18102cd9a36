import { parseSync } from 'oxc-parser';
import { type Node, nameOf, nodesOf } from './modules.ts';

/** Where a test waits for nothing but time, read from its source. */

const LONGEST_MS = 100;

type Constants = ReadonlyMap<string, unknown>;

/** Milliseconds of an expression, at most; null: nobody can tell. */
function msOf(node: unknown, constants: Constants): number | null {
  const { type, value, left, right, operator, callee } = (node ?? {}) as Node;
  if (type === 'Literal') return typeof value === 'number' ? value : null;
  if (type === 'Identifier')
    return constants.has(nameOf(node)) ? msOf(constants.get(nameOf(node)), new Map()) : null;
  if (type === 'CallExpression') return memberOf(callee) === 'random' ? 1 : null;
  if (type === 'ArrayExpression') {
    const all = ((node as Node)['elements'] as unknown[]).map((one) => msOf(one, constants));
    return all.reduce((most, ms) => (most === null || ms === null ? null : Math.max(most, ms)), 0);
  }
  if (type === 'ParenthesizedExpression') return msOf((node as Node)['expression'], constants);
  if (type !== 'BinaryExpression') return null;
  const [a, b] = [msOf(left, constants), msOf(right, constants)];
  if (a === null || b === null) return null;
  if (operator === '*') return a * b;
  if (operator === '/') return a / b;
  return operator === '+' || operator === '-' ? a + b : null;
}

function memberOf(callee: unknown): string {
  const { type, property } = (callee ?? {}) as Node;
  return type === 'MemberExpression' ? nameOf(property) : '';
}

const first = (list: unknown): Node | undefined => (list as Node[] | undefined)?.[0];

/** `setTimeout(resolve, ms)`, where `resolve` is a promise's: its second argument. */
function waitedFor(call: Node, resolvers: ReadonlySet<string>): unknown {
  if (call.type !== 'CallExpression' || nameOf(call['callee']) !== 'setTimeout') return undefined;
  const [then, ms] = call['arguments'] as Node[];
  const body = (then?.['body'] ?? {}) as Node;
  const resolved = [nameOf(then), nameOf(body['callee'])].some((name) => resolvers.has(name));
  return resolved ? ms : undefined;
}

interface File {
  readonly source: string;
  readonly nodes: readonly Node[];
  readonly constants: Constants;
  readonly resolvers: ReadonlySet<string>;
  /** What `setTimeout` of node:timers/promises is called here. */
  readonly sleepers: readonly string[];
}

function read(file: string, source: string): File {
  const nodes = [...nodesOf(parseSync(file, source).program)];
  const constants = new Map<string, unknown>();
  const resolvers = new Set<string>();
  const sleepers: string[] = [];
  for (const node of nodes) {
    if (node.type === 'VariableDeclarator' && node['init']) constants.set(nameOf(node['id']), node['init']);
    // for (const ms of [1, 20])
    if (node.type === 'ForOfStatement') {
      const [one] = ((node['left'] as Node)['declarations'] ?? []) as Node[];
      if (one) constants.set(nameOf(one['id']), node['right']);
    }
    if (node.type === 'NewExpression' && nameOf(node['callee']) === 'Promise')
      resolvers.add(nameOf(first(first(node['arguments'])?.['params'])));
    if (node.type === 'ImportDeclaration' && (node['source'] as Node)['value'] === 'node:timers/promises')
      for (const { imported, local } of node['specifiers'] as Node[])
        if (nameOf(imported) === 'setTimeout') sleepers.push(nameOf(local));
  }
  resolvers.delete('');
  return { source, nodes, constants, resolvers, sleepers };
}

/** Functions that sleep for as long as their first argument says, `pause`, with the call in which they do. */
function helpersOf({ nodes, resolvers }: File): (readonly [name: string, call: Node])[] {
  return nodes.flatMap((node) => {
    const work = (node.type === 'VariableDeclarator' ? node['init'] : node) as Node | null;
    const [name, ms] = [nameOf(node['id']), nameOf(first(work?.['params']))];
    if (name === '' || ms === '') return [];
    const call = [...nodesOf(work?.['body'])].find((one) => nameOf(waitedFor(one, resolvers)) === ms);
    return call ? [[name, call] as const] : [];
  });
}

/** A limit: whoever waits for it waits for something else as well. */
const isLimit = (call: Node, source: string): boolean =>
  source.slice(call['start'] as number, call['end'] as number).includes('ref: false');

/** `file: what it waits for`, where that is longer than a tenth of a second or nobody can tell. */
export function longSleeps(sources: ReadonlyMap<string, string>): string[] {
  const files = new Map<string, File>();
  const readThose = (words: RegExp): void => {
    for (const [name, source] of sources)
      if (!files.has(name) && words.test(source)) files.set(name, read(name, source));
  };
  readThose(/setTimeout|waitForTimeout/);
  const found = [...files.values()].flatMap(helpersOf);
  const helpers = new Set(found.map(([name]) => name));
  const inside = new Set(found.map(([, call]) => call));
  if (helpers.size > 0) readThose(new RegExp(`\\b(?:${[...helpers].join('|')})\\(`));
  return [...files].flatMap(([name, file]) => {
    const long = file.nodes.flatMap((node) => {
      if (node.type !== 'CallExpression' || inside.has(node)) return [];
      const callee = nameOf(node['callee']);
      const named = helpers.has(callee) || file.sleepers.includes(callee);
      const ms =
        named || memberOf(node['callee']) === 'waitForTimeout'
          ? first(node['arguments'])
          : waitedFor(node, file.resolvers);
      if (ms === undefined || isLimit(node, file.source)) return [];
      const isLong = (msOf(ms, file.constants) ?? Number.POSITIVE_INFINITY) > LONGEST_MS;
      return isLong ? [`${name}: ${file.source.slice(node['start'] as number, node['end'] as number)}`] : [];
    });
    return [...new Set(long)];
  });
}
