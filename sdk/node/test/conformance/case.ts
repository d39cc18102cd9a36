import { readFileSync } from 'node:fs';
import { problems, type Schema } from './schema.ts';

/** Reads the shared cases and validates them against their schema, so that a runner fails on anything that it does not know. */

export interface Range {
  readonly min?: number;
  readonly max?: number;
}

export interface Expectation {
  readonly result?: unknown;
  readonly error?: Readonly<Record<string, unknown>>;
  readonly cancelled?: true;
  readonly elapsedMs?: Range;
  readonly hides?: readonly string[];
}

export interface Step {
  readonly call: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly options?: Readonly<Record<string, unknown>>;
  /** Epoch seconds that the client's clock shows during the call. */
  readonly now?: number;
  /** In place of `now`: so much later than the time. */
  readonly laterSeconds?: number;
  readonly waitMs?: number;
  readonly times?: number;
  readonly cancelAfterRequests?: number;
  readonly expect: Expectation;
  readonly save?: Readonly<Record<string, string>>;
}

export interface RequestExpectation {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly absentHeaders?: readonly string[];
  readonly body?: unknown;
}

export interface RequestsExpectation {
  readonly count?: number;
  readonly connections?: Range;
  readonly idempotencyKey?: 'none' | 'one' | 'distinct';
  readonly gapsMs?: readonly Range[];
  readonly each?: RequestExpectation;
  readonly inOrder?: readonly RequestExpectation[];
}

export interface Case {
  readonly name: string;
  readonly kind: 'live' | 'stub' | 'pure' | 'fake';
  readonly fake?: true;
  readonly client?: Readonly<Record<string, unknown>> & { readonly key?: string };
  readonly script?: readonly unknown[];
  readonly steps: readonly Step[];
  readonly requests?: RequestsExpectation;
}

const FOLDER = new URL('../../../conformance/', import.meta.url);
const read = (name: string): unknown => JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')) as unknown;

/** @throws {Error} for a file that the schema does not describe, or two cases of one name */
export function checkCases(file: unknown): readonly Case[] {
  const schema = read('schema.json') as Readonly<Record<string, unknown>>;
  const found = problems(file, schema, schema['$defs'] as Readonly<Record<string, Schema>>, 'cases');
  if (found.length > 0) throw new Error(found.join('\n'));
  const { cases } = file as { readonly cases: readonly Case[] };
  const names = new Set(cases.map(({ name }) => name));
  if (names.size !== cases.length) throw new Error('two cases have one name');
  return cases;
}

export const readCases = (): unknown => read('cases.json');
