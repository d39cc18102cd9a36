import { type ClientDescription, type Field, NOTE } from './sdk-surface.ts';

/** Prints the shared part of the Java SDK: a table, and a record for each new type. */

const FOLDER = 'sdk/java/src/main/java/dev/gpd/consent';
const TYPES: Readonly<Record<string, string>> = {
  string: 'String',
  time: 'Instant',
  integer: 'Long',
  boolean: 'Boolean',
};

function componentOf({ name, type, isList, isOptional }: Field): string {
  const item = TYPES[type] ?? type;
  if (isList) return `List<${item}> ${name}`;
  const primitive = { Long: 'long', Boolean: 'boolean' }[item];
  return `${isOptional ? item : (primitive ?? item)} ${name}`;
}

function recordFile(name: string, fields: readonly Field[]): string {
  const imports = [
    ...(fields.some(({ type }) => type === 'time') ? ['import java.time.Instant;'] : []),
    ...(fields.some(({ isList }) => isList) ? ['import java.util.List;'] : []),
  ];
  const optional = fields.filter(({ isOptional }) => isOptional).map((field) => field.name);
  const nulls = optional.length === 0 ? '' : ` Null if absent: ${optional.join(', ')}.`;
  return [
    'package dev.gpd.consent;',
    '',
    ...imports,
    ...(imports.length > 0 ? [''] : []),
    `/** An answer of gpd, with the names of the wire.${nulls} ${NOTE} */`,
    `public record ${name}(${fields.map(componentOf).join(', ')}) {}`,
    '',
  ].join('\n');
}

const quoted = (value: string): string => JSON.stringify(value);

export function javaFiles({ operations, types, rules }: ClientDescription): Record<string, string> {
  const { kinds, raised, retried, details, errors } = rules;
  const constant = (name: string): string => name.toUpperCase().replaceAll('-', '_');
  const rows = operations.map(
    ({ method, verb, path, statuses, accept, isWrite, isIdempotent, shape }) =>
      `          row(${[quoted(method), quoted(verb), quoted(path), `Set.of(${statuses.join(', ')})`, quoted(accept), isWrite, isIdempotent, shape === null ? 'null' : quoted(JSON.stringify(shape))].join(', ')})`,
  );
  const wire = [
    'package dev.gpd.consent;',
    '',
    'import java.util.Map;',
    'import java.util.Set;',
    '',
    `/** ${NOTE} */`,
    'final class Wire {',
    '  /** @param shape of the answer, or null for a text */',
    '  record Row(',
    '      String verb, String path, Set<Integer> statuses, String accept, boolean isWrite, boolean isIdempotent, Object shape) {}',
    '',
    '  static final Map<String, Row> OPERATIONS =',
    '      Map.ofEntries(',
    `${rows.join(',\n')});`,
    '',
    '  static final Map<Integer, ErrorKind> KIND_OF_STATUS =',
    `      Map.of(${Object.entries(kinds)
      .map(([status, kind]) => `${status}, ErrorKind.${constant(kind)}`)
      .join(', ')});`,
    '',
    `  static final Set<Integer> ALWAYS_RAISED = Set.of(${raised.join(', ')});`,
    '',
    `  static final Set<Integer> RETRIED = Set.of(${retried.join(', ')});`,
    '',
    '  private Wire() {}',
    '',
    '  private static Map.Entry<String, Row> row(',
    '      String method, String verb, String path, Set<Integer> statuses, String accept, boolean isWrite, boolean isIdempotent, String shape) {',
    '    return Map.entry(method, new Row(verb, path, statuses, accept, isWrite, isIdempotent, Shape.parse(shape)));',
    '  }',
    '}',
    '',
  ].join('\n');
  const detail = [
    'package dev.gpd.consent;',
    '',
    `/** Why there is no answer, or none of gpd. ${NOTE} */`,
    'public enum ErrorDetail {',
    `${details.map((name) => `  ${constant(name)}`).join(',\n')};`,
    '',
    '  @Override',
    '  public String toString() {',
    '    return name().toLowerCase(java.util.Locale.ROOT);',
    '  }',
    '}',
    '',
  ].join('\n');
  const codes = [
    'package dev.gpd.consent;',
    '',
    `/** Codes of errors that this version of gpd sends. ${NOTE} */`,
    'public final class ErrorCodes {',
    ...Object.keys(errors).map((code) => `  public static final String ${constant(code)} = ${quoted(code)};`),
    '',
    '  private ErrorCodes() {}',
    '}',
    '',
  ].join('\n');
  return {
    [`${FOLDER}/Wire.java`]: wire,
    [`${FOLDER}/ErrorDetail.java`]: detail,
    [`${FOLDER}/ErrorCodes.java`]: codes,
    ...Object.fromEntries(
      types.map(({ name, fields }) => [`${FOLDER}/${name}.java`, recordFile(name, fields)]),
    ),
  };
}
