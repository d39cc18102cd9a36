/** Substitutes variables and compares results, as conformance/README.md says. */

export type Variables = Map<string, unknown>;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const VARIABLE = /\$\{(\w+)\}/g;

/** @throws {Error} for an unknown name */
export function substitute(value: unknown, variables: Variables): unknown {
  const variable = (name: string): unknown => {
    if (!variables.has(name)) throw new Error(`there is no variable ${name}`);
    return variables.get(name);
  };
  if (typeof value === 'string') {
    const whole = /^\$\{(\w+)\}$/.exec(value)?.[1];
    if (whole !== undefined) return variable(whole);
    return value.replace(VARIABLE, (_, name: string) => String(variable(name)));
  }
  if (Array.isArray(value)) return value.map((item) => substitute(item, variables));
  if (!isRecord(value)) return value;
  const repeated = value['$repeat'];
  if (Array.isArray(repeated) && Object.keys(value).length === 1) {
    const [item, times] = repeated as [unknown, number];
    return Array.from({ length: times }, () => substitute(item, variables));
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, substitute(inner, variables)]),
  );
}

const show = (value: unknown): string => JSON.stringify(value) ?? 'nothing';

function matchMatcher(actual: unknown, name: string, rule: unknown, at: string): string | null {
  const bad = `${at}: ${show(actual)} is not ${name} ${show(rule)}`;
  switch (name) {
    case '$match':
      return typeof actual === 'string' && new RegExp(String(rule), 'u').test(actual) ? null : bad;
    case '$type': {
      if (!['string', 'integer', 'boolean'].includes(String(rule))) throw new Error(`no type ${show(rule)}`);
      const type = Number.isInteger(actual) ? 'integer' : typeof actual;
      return type === rule ? null : bad;
    }
    case '$includes':
      return Array.isArray(actual) && actual.some((item) => difference(item, rule, at) === null) ? null : bad;
    default:
      throw new Error(`there is no matcher ${name}`);
  }
}

/** @param exact an object may have no unexpected field @returns the first difference, or null */
export function difference(actual: unknown, expected: unknown, at = 'result', exact = false): string | null {
  if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length) {
      return `${at}: ${show(actual)} is no list of ${expected.length}`;
    }
    const each = expected.map((item, i) => difference(actual[i], item, `${at}[${i}]`, exact));
    return each.find((found) => found !== null) ?? null;
  }
  if (!isRecord(expected)) {
    return Object.is(actual ?? null, expected) ? null : `${at}: ${show(actual)}, expected ${show(expected)}`;
  }
  const [[name, rule] = ['', null], ...otherEntries] = Object.entries(expected);
  if (name.startsWith('$') && otherEntries.length === 0) return matchMatcher(actual, name, rule, at);
  if (!isRecord(actual)) return `${at}: ${show(actual)} is no object`;
  const surplus = exact ? Object.keys(actual).filter((key) => !Object.hasOwn(expected, key)) : [];
  if (surplus.length > 0) return `${at}: ${surplus.join(', ')} must not be there`;
  const each = Object.entries(expected).map(([key, value]) =>
    difference(actual[key], value, `${at}.${key}`, exact),
  );
  return each.find((found) => found !== null) ?? null;
}

export function within(
  value: number,
  { min = 0, max = Number.POSITIVE_INFINITY }: { min?: number; max?: number },
): boolean {
  return value >= min && value <= max;
}
