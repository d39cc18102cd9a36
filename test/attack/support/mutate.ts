import type { Random } from '../../../src/lib/crypto.ts';

/** Changes good input a little, reproducibly. */

const NASTY_STRINGS = [
  '',
  '\u0000',
  '__proto__',
  'constructor',
  'toString',
  'null',
  '\ud800',
  '\u202e',
  '💩'.repeat(50),
  'x'.repeat(3000),
  "' OR 1=1 --",
  '<script>alert(1)</script>',
  '<%= process.exit() %>',
  '../../etc/passwd',
  '\r\nSet-Cookie: a=b',
  '\u001b[2J',
  '{{7*7}}',
  '1e400',
  '%00',
];
/** These are JSON texts, because no serializer would write some of them. */
const NASTY_VALUES = [
  'null',
  'true',
  'false',
  '0',
  '-0',
  '-1',
  '1e308',
  '1e400',
  '-1e400',
  '9007199254740993',
  '0.1',
  '1e-400',
  '[]',
  '{}',
  '[[[[[[[[]]]]]]]]',
  '{"__proto__":{"polluted":true}}',
  '{"constructor":{"prototype":{"polluted":true}}}',
  '{"toString":1,"valueOf":2,"toJSON":3}',
  '{"length":4294967295}',
  `${'['.repeat(40)}${']'.repeat(40)}`,
  '"\\ud800"',
  ...NASTY_STRINGS.map((text) => JSON.stringify(text)),
];

export interface Mutator {
  /** Bytes flipped, cut, doubled, moved. */
  bytes(input: Buffer): Buffer;
  /** The value as JSON text with one member, at any depth, changed, dropped, doubled or renamed. */
  json(value: unknown): string;
  /** The JSON text, now and then spelled in another way. */
  raw(text: string): string;
}

export function createMutator(random: Random): Mutator {
  const below = (n: number): number => random(4).readUInt32BE() % Math.max(1, n);
  const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T;

  function mutateOnce(input: Buffer): Buffer {
    const at = below(input.length);
    const to = at + 1 + below(Math.min(64, input.length - at));
    switch (below(6)) {
      case 0: {
        const copy = Buffer.from(input);
        copy[at] = (copy[at] ?? 0) ^ (1 << below(8));
        return copy;
      }
      case 1:
        return input.subarray(0, at);
      case 2:
        return Buffer.concat([input.subarray(0, at), input.subarray(to)]);
      case 3:
        return Buffer.concat([input.subarray(0, to), input.subarray(at)]);
      case 4:
        return Buffer.concat([input.subarray(0, at), random(1 + below(8)), input.subarray(at)]);
      default:
        return Buffer.concat([input.subarray(0, at), Buffer.from(pick(NASTY_VALUES)), input.subarray(to)]);
    }
  }

  /** Paths of all members, leaves and branches alike. */
  function paths(value: unknown, path: readonly string[] = []): (readonly string[])[] {
    if (typeof value !== 'object' || value === null) return [];
    return Object.entries(value).flatMap(([key, child]) => [[...path, key], ...paths(child, [...path, key])]);
  }

  function write(value: unknown, path: readonly string[], variant: number): string {
    const [key, ...rest] = path;
    if (Array.isArray(value)) {
      const items = value.map((item, i) => {
        if (String(i) !== key) return JSON.stringify(item);
        return rest.length > 0 ? write(item, rest, variant) : pick(NASTY_VALUES);
      });
      return `[${items.join(',')}]`;
    }
    const members = Object.entries(value as object).map(([name, child]) => {
      const unchanged = `${JSON.stringify(name)}:${JSON.stringify(child)}`;
      if (name !== key) return unchanged;
      if (rest.length > 0) return `${JSON.stringify(name)}:${write(child, rest, variant)}`;
      if (variant === 0) return '';
      if (variant === 1) return `${unchanged},${JSON.stringify(name)}:${pick(NASTY_VALUES)}`;
      if (variant === 2) return `${JSON.stringify(pick(NASTY_STRINGS))}:${JSON.stringify(child)}`;
      return `${JSON.stringify(name)}:${pick(NASTY_VALUES)}`;
    });
    return `{${members.filter((member) => member !== '').join(',')}}`;
  }

  return {
    bytes(input) {
      let output = input;
      for (let i = below(3); i >= 0; i -= 1) output = mutateOnce(output);
      return output;
    },
    json(value) {
      // A member of the top first: most leaves are signals, and the rest shall have its turn too.
      const [top, child] = pick(Object.entries(value as object));
      const inside = paths(child, [top]);
      return write(value, below(4) === 0 || inside.length === 0 ? [top] : pick(inside), below(8));
    },
    raw(text) {
      const variant = below(10);
      if (variant === 0) return `${text} `;
      if (variant === 1) return pick(NASTY_VALUES);
      return text;
    },
  };
}
