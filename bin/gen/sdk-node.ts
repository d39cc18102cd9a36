import { type ClientDescription, type Field, NOTE } from './sdk-surface.ts';

/** Prints the shared part of the Node SDK, one operation a line. */

const TYPES: Readonly<Record<string, string>> = { time: 'string', integer: 'number' };

function fieldLine({ name, type, isList, isOptional }: Field): string {
  const item = TYPES[type] ?? type;
  return `  readonly ${name}${isOptional ? '?' : ''}: ${isList ? `readonly ${item}[]` : item};`;
}

const listed = (values: readonly (string | number)[]): string => JSON.stringify(values).replaceAll('"', "'");

export function nodeFile({ operations, types, rules }: ClientDescription): string {
  const { kinds, raised, retried, details, errors } = rules;
  const rows = operations.map(
    ({ method, verb, path, statuses, accept, isWrite, isIdempotent, shape }) =>
      `  '${method}': { verb: '${verb}', path: '${path}', statuses: ${listed(statuses)}, accept: '${accept}', isWrite: ${isWrite}, isIdempotent: ${isIdempotent}, shape: ${shape === null ? 'null' : `'${JSON.stringify(shape)}'`} },`,
  );
  // Methods return the lists inside these two.
  const shown = types.filter(({ name }) => name !== 'Purposes' && name !== 'Policies');
  const interfaces = shown.flatMap(({ name, fields }) => [
    `export interface ${name} {`,
    ...fields.map(fieldLine),
    '}',
    '',
  ]);
  return [
    `/** ${NOTE} */`,
    '',
    'export interface OperationRow {',
    "  readonly verb: 'GET' | 'POST' | 'PUT';",
    '  readonly path: string;',
    '  readonly statuses: readonly number[];',
    '  readonly accept: string;',
    '  readonly isWrite: boolean;',
    '  readonly isIdempotent: boolean;',
    '  /** JSON of the shape of an answer, or null for a text. */',
    '  readonly shape: string | null;',
    '}',
    '',
    'export const OPERATIONS = {',
    ...rows,
    '} as const satisfies Readonly<Record<string, OperationRow>>;',
    '',
    `export const KIND_OF_STATUS = ${JSON.stringify(kinds).replaceAll('"', "'")} as const;`,
    `export const ALWAYS_RAISED: ReadonlySet<number> = new Set(${listed(raised)});`,
    `export const RETRIED: ReadonlySet<number> = new Set(${listed(retried)});`,
    `export const ERROR_KINDS = ${listed(rules.errorKinds)} as const;`,
    `export const DETAILS = ${listed(details)} as const;`,
    '/** Codes of errors that this version of gpd sends. */',
    `export type KnownCode = ${Object.keys(errors)
      .map((code) => `'${code}'`)
      .join(' | ')};`,
    '',
    '/** The place of an entry in the log of the tenant. */',
    'export interface ProofRef {',
    '  readonly seq: number;',
    '  /** 64 lower-case hex digits: SHA-256(0x00 || entry). */',
    '  readonly hash: string;',
    '}',
    '',
    ...interfaces,
  ].join('\n');
}
