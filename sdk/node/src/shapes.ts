import { isRecord, type JsonRecord } from './body.ts';
import type { ConsentError } from './errors.ts';
import { parseState, type SignedState } from './state-cookie.ts';
import type {
  ConsentState,
  Decision,
  Health,
  History,
  ProofRef,
  Receipt,
  ReportedOutcome,
  Session,
  Verdict,
  WriteResult,
} from './types.ts';

/** Checks the shape of answers. Readers return null for a malformed answer. */

const HASH = /^[0-9a-f]{64}$/;

const isSeq = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isString = (value: unknown): value is string => typeof value === 'string';
const isTextOrNull = (value: unknown): boolean => value === null || isString(value);
const isProofRef = (value: unknown): boolean =>
  isRecord(value) && isSeq(value['seq']) && isString(value['hash']) && HASH.test(value['hash']);

/** A decision as the server sends it. */
interface SentDecision {
  readonly allowed: boolean;
  readonly reason: string;
  readonly proof: ProofRef;
  readonly policyVersion?: number | null;
  readonly expiresAt?: string | null;
  readonly given?: string;
}

function isDecision(value: unknown): value is JsonRecord & SentDecision {
  if (!isRecord(value)) return false;
  const { policyVersion = null, expiresAt = null } = value as {
    policyVersion?: unknown;
    expiresAt?: unknown;
  };
  return (
    typeof value['allowed'] === 'boolean' &&
    isString(value['reason']) &&
    isProofRef(value['proof']) &&
    (policyVersion === null || Number.isSafeInteger(policyVersion)) &&
    isTextOrNull(expiresAt) &&
    (value['given'] === undefined || isString(value['given']))
  );
}

export function readDecision(value: unknown): Decision | null {
  if (!isDecision(value)) return null;
  const { allowed, reason, proof, policyVersion = null, expiresAt = null, given = 'unknown' } = value;
  const { seq, hash } = proof;
  return { allowed, reason, proof: { seq, hash }, policyVersion, expiresAt, given, error: null };
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
    if (isString(id)) found.set(id, found.has(id) ? null : readDecision(item));
  }
  return found;
}

/** True if the value has the type; otherwise the answer is malformed. */
export type Shape<T> = (value: unknown) => value is T;

export const isWriteResult: Shape<WriteResult> = (value): value is WriteResult =>
  isProofRef(value) &&
  isRecord(value) &&
  Array.isArray(value['entries']) &&
  value['entries'].every((entry) => isProofRef(entry) && isRecord(entry) && isString(entry['purpose']));

/** The keys of `GET /v1/consent/state-keys` for ES256, and the tenant of the API key. */
export interface StateKeySet {
  readonly tenant: string;
  readonly keys: readonly { readonly kid: string; readonly x: string; readonly y: string }[];
}

function isStateKey(value: unknown): value is StateKeySet['keys'][number] {
  if (!isRecord(value) || !['kid', 'x', 'y'].every((name) => isString(value[name]))) return false;
  const { kty, crv, alg = 'ES256', use = 'sig' } = value as { readonly [name: string]: unknown };
  return kty === 'EC' && crv === 'P-256' && alg === 'ES256' && use === 'sig';
}

/** Keys of other kinds are passed over. @returns null for a malformed answer */
export function readStateKeys(value: unknown): StateKeySet | null {
  if (!isRecord(value) || !isString(value['tenant']) || !Array.isArray(value['keys'])) return null;
  return { tenant: value['tenant'], keys: value['keys'].filter(isStateKey) };
}

export interface RefreshedState {
  readonly signed: SignedState;
  readonly purposes: readonly string[];
  readonly seq: number;
}

export function readRefreshed(value: unknown): RefreshedState | null {
  if (!isRecord(value) || !isString(value['state'])) return null;
  const { purposes, seq } = value as { readonly purposes?: unknown; readonly seq?: unknown };
  const signed = parseState(value['state']);
  if (signed === null || !Array.isArray(purposes) || !purposes.every(isString) || !isSeq(seq)) return null;
  return { signed, purposes, seq };
}

/** An item of a state: the decision and the person's choice. */
const isPurposeState = (value: unknown): boolean =>
  isDecision(value) &&
  isString(value['purpose']) &&
  isTextOrNull(value['choice']) &&
  isTextOrNull(value['at']);

export const isConsentState: Shape<ConsentState> = (value): value is ConsentState =>
  isRecord(value) &&
  isString(value['principalId']) &&
  Array.isArray(value['purposes']) &&
  value['purposes'].every(isPurposeState);

export const isHistory: Shape<History> = (value): value is History =>
  isRecord(value) &&
  isString(value['principalId']) &&
  isTextOrNull(value['nextCursor']) &&
  Array.isArray(value['events']) &&
  value['events'].every((event) => isRecord(event) && isSeq(event['seq']) && isString(event['type']));

export const isSession: Shape<Session> = (value): value is Session =>
  isRecord(value) && ['token', 'principalId', 'expiresAt'].every((name) => isString(value[name]));

export const isReceipt: Shape<Receipt> = (value): value is Receipt =>
  isRecord(value) && isRecord(value['receipt']) && isString(value['jws']) && isRecord(value['jwk']);

export const isVerdict: Shape<Verdict> = (value): value is Verdict =>
  isRecord(value) &&
  ['requestId', 'class', 'reason', 'decidedAt'].every((name) => isString(value[name])) &&
  typeof value['restricted'] === 'boolean';

export const isReportedOutcome: Shape<ReportedOutcome> = (value): value is ReportedOutcome =>
  isRecord(value) && ['requestId', 'outcome', 'at'].every((name) => isString(value[name]));

export const isHealth: Shape<Health> = (value): value is Health =>
  isRecord(value) && value['status'] === 'ok' && isString(value['version']);
