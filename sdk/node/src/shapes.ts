import { isRecord, type JsonRecord } from './body.ts';
import type { ConsentError } from './errors.ts';
import { parseState, type SignedState } from './state-cookie.ts';
import type { Decision } from './types.ts';
import { OPERATIONS, type ProofRef } from './wire.ts';

/** Checks the shape of answers by the shapes of the OpenAPI document. Readers return null for a malformed answer. */

export type OperationName = keyof typeof OPERATIONS;
/** A word with `|null` behind it if the value may be null, a list of one shape, or fields, with `?` if they may be absent. */
type Shape = string | readonly [Shape] | { readonly [field: string]: Shape };

const HASH = /^[0-9a-f]{64}$/;
const isSeq = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

const WORDS: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  boolean: (value) => typeof value === 'boolean',
  number: (value) => typeof value === 'number',
  integer: (value) => Number.isSafeInteger(value),
  seq: isSeq,
  hash: (value) => typeof value === 'string' && HASH.test(value),
  object: isRecord,
};

function matches(value: unknown, shape: Shape): boolean {
  if (typeof shape === 'string') {
    const [word = '', orNull] = shape.split('|');
    return (orNull !== undefined && value === null) || WORDS[word]?.(value) === true;
  }
  if (Array.isArray(shape)) {
    const [item] = shape as readonly [Shape];
    return Array.isArray(value) && value.every((one) => matches(one, item));
  }
  return (
    isRecord(value) &&
    Object.entries(shape).every(([field, inner]) => {
      const name = field.replace(/\?$/, '');
      return name !== field && value[name] === undefined ? true : matches(value[name], inner);
    })
  );
}

const SHAPES = new Map<string, Shape>(
  Object.entries(OPERATIONS).map(([name, { shape }]) => [name, JSON.parse(shape ?? '{}') as Shape]),
);

/** True if the value has the shape of the operation's answer. */
export const isAnswer = (operation: OperationName, value: unknown): value is JsonRecord =>
  matches(value, SHAPES.get(operation) ?? {});

/** A decision as the server sends it. */
interface SentDecision {
  readonly allowed: boolean;
  readonly reason: string;
  readonly proof: ProofRef;
  readonly policyVersion?: number | null;
  readonly expiresAt?: string | null;
  readonly given?: string;
  readonly subject?: string;
}

export function readDecision(value: unknown): Decision | null {
  if (!isAnswer('canProcess', value)) return null;
  const decision = value as unknown as SentDecision;
  const {
    allowed,
    reason,
    proof,
    policyVersion = null,
    expiresAt = null,
    given = 'unknown',
    subject,
  } = decision;
  const { seq, hash } = proof;
  const named = subject === undefined ? {} : { subject };
  return { allowed, reason, proof: { seq, hash }, policyVersion, expiresAt, given, ...named, error: null };
}

/** The denial of a check that could not be decided. */
export function unavailable(error: ConsentError): Decision {
  const nothing = { proof: null, policyVersion: null, expiresAt: null, given: 'unknown' } as const;
  return { allowed: false, reason: 'unavailable', ...nothing, error };
}

/** Decisions by id; null for an id that appears twice or whose decision is malformed. @returns null for a malformed answer */
export function readBatch(value: unknown): ReadonlyMap<string, Decision | null> | null {
  if (!isRecord(value) || !Array.isArray(value['results'])) return null;
  const found = new Map<string, Decision | null>();
  for (const item of value['results'] as unknown[]) {
    const id = isRecord(item) ? item['id'] : undefined;
    if (typeof id === 'string') found.set(id, found.has(id) ? null : readDecision(item));
  }
  return found;
}

/** The keys of `GET /v1/consent/state-keys` for ES256, and the tenant of the API key. */
export interface StateKeySet {
  readonly tenant: string;
  readonly keys: readonly { readonly kid: string; readonly x: string; readonly y: string }[];
}

function isStateKey(value: unknown): value is StateKeySet['keys'][number] {
  if (!matches(value, { kid: 'string', x: 'string', y: 'string' })) return false;
  const { kty, crv, alg = 'ES256', use = 'sig' } = value as { readonly [name: string]: unknown };
  return kty === 'EC' && crv === 'P-256' && alg === 'ES256' && use === 'sig';
}

/** Keys of other kinds are passed over. @returns null for a malformed answer */
export function readStateKeys(value: unknown): StateKeySet | null {
  if (!isRecord(value) || typeof value['tenant'] !== 'string' || !Array.isArray(value['keys'])) return null;
  return { tenant: value['tenant'], keys: value['keys'].filter(isStateKey) };
}

export interface RefreshedState {
  readonly signed: SignedState;
  readonly purposes: readonly string[];
  readonly seq: number;
}

export function readRefreshed(value: unknown): RefreshedState | null {
  if (!isAnswer('refreshState', value)) return null;
  const { state, purposes, seq } = value as unknown as Omit<RefreshedState, 'signed'> & { state: string };
  const signed = parseState(state);
  return signed === null ? null : { signed, purposes, seq };
}
