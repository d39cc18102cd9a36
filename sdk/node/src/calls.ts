import { MALFORMED, parseJson } from './body.ts';
import * as args from './check-args.ts';
import { type ConsentError, isUndecided } from './errors.ts';
import * as shapes from './shapes.ts';
import type { CallOptions, Check, Decision } from './types.ts';
import { OPERATIONS, type OperationRow } from './wire.ts';

/** From an operation and its details to a call, and from the answer to a result. */

export interface Call {
  /** Name of the method, for errors. */
  readonly name: string;
  readonly operation: shapes.OperationName;
  readonly path: string;
  readonly body?: object | undefined;
  /** A token of a person, in place of the key. */
  readonly token?: string | undefined;
  readonly idempotencyKey?: string | undefined;
  /** Principal ids and tokens of the call: they must not be in an error. */
  readonly secrets: readonly string[];
}

export interface Answer {
  readonly text: string | typeof MALFORMED;
  readonly status: number;
  readonly requestId: string | null;
}

export interface Sender {
  /** Notes a call of a method. @throws {ConsentError} config, once it is closed */
  begin(method: string, args: readonly unknown[]): void;
  /** @throws {ConsentError}, or the reason of the caller's signal */
  send(call: Call, options: CallOptions): Promise<Answer>;
  /** The error of an answer that gpd cannot have sent. */
  malformed(call: Call, answer: Answer): ConsentError;
  close(): void;
}

export type Purposeful = Omit<Check, 'minSeq'>;
type Read<T> = (value: unknown) => T | null;
export interface Details {
  readonly params?: Readonly<Record<string, string | number>>;
  readonly body?: object;
  readonly token?: string;
  readonly idempotencyKey?: string;
  readonly secrets?: readonly string[];
}

export class Calls {
  readonly #sender: Sender;
  readonly #settings: { readonly onUnavailable: 'deny' | 'error' };

  constructor(sender: Sender, settings: { readonly onUnavailable: 'deny' | 'error' }) {
    this.#sender = sender;
    this.#settings = settings;
  }

  async check(name: string, check: Check, options?: CallOptions): Promise<Decision> {
    args.checkCheck(name, check);
    this.#sender.begin(name, [check]);
    const { principalId, purpose, minSeq } = check;
    const details = { body: { principalId, purpose, minSeq }, secrets: [principalId] };
    try {
      return await this.read(call(name, 'canProcess', details), shapes.readDecision, options);
    } catch (error) {
      return this.undecided(error, shapes.unavailable);
    }
  }

  async checkMany(name: string, checks: readonly Purposeful[], options?: CallOptions): Promise<Decision[]> {
    const secrets = checks.map(({ principalId }) => principalId);
    const body = {
      checks: checks.map(({ principalId, purpose }, i) => ({ id: String(i), principalId, purpose })),
    };
    const batch = call(name, 'canProcessMany', { body, secrets });
    try {
      const answer = await this.#sender.send(batch, options ?? {});
      const found = shapes.readBatch(parseJson(answer.text));
      if (found === null) throw this.#sender.malformed(batch, answer);
      return checks.map(
        (_, i) =>
          found.get(String(i)) ?? this.undecided(this.#sender.malformed(batch, answer), shapes.unavailable),
      );
    } catch (error) {
      return checks.map(() => this.undecided(error, shapes.unavailable));
    }
  }

  /** The only place where an error of a check becomes a denial. @throws {Error} errors that must not become a denial */
  undecided<T>(error: unknown, denied: (error: ConsentError) => T): T {
    if (isUndecided(error) && this.#settings.onUnavailable === 'deny') return denied(error);
    throw error;
  }

  /** @param expected fields of the answer, which must be about what was asked */
  ask<T>(
    name: string,
    operation: shapes.OperationName,
    details: Details,
    options: CallOptions | undefined,
    expected: Readonly<Record<string, string>> = {},
  ): Promise<T> {
    const isExpected: Read<T> = (value) =>
      shapes.isAnswer(operation, value) &&
      Object.entries(expected).every(([field, text]) => value[field] === text)
        ? (value as T)
        : null;
    return this.read(call(name, operation, details), isExpected, options);
  }

  async read<T>(request: Call, read: Read<T>, options: CallOptions = {}): Promise<T> {
    const answer = await this.#sender.send(request, options);
    const value = read(parseJson(answer.text));
    if (value === null) throw this.#sender.malformed(request, answer);
    return value;
  }

  async text(request: Call, options: CallOptions = {}): Promise<string> {
    const answer = await this.#sender.send(request, options);
    if (answer.text === MALFORMED) throw this.#sender.malformed(request, answer);
    return answer.text;
  }
}

export function call(name: string, operation: shapes.OperationName, details: Details = {}): Call {
  const { params = {}, secrets = [], ...rest } = details;
  const { path }: OperationRow = OPERATIONS[operation];
  return {
    name,
    operation,
    path: path.replace(/\{(\w+)\}/, (_, key: string) => `${params[key]}`),
    secrets,
    ...rest,
  };
}
