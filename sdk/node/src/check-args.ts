import { ConsentError } from './errors.ts';

/** Checks arguments before a call (SPEC.md section 2). The messages contain no values. */

const MAX_CHECKS = 100;
const REQUEST_ID = /^[A-Za-z0-9_-]{1,64}$/;
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

function require(method: string, holds: boolean, hint: string): void {
  if (!holds) throw new ConsentError(method, 'invalid-request', { hint });
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
const isSeq = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

export function checkText(method: string, name: string, value: unknown): void {
  require(method, isText(value), `${name} is a string that is not empty`);
}

export function checkPrincipal(method: string, principalId: unknown): void {
  require(method, isText(principalId), 'principalId is a string that is not empty');
}

export function checkCheck(
  method: string,
  check: { readonly principalId: unknown; readonly purpose: unknown; readonly minSeq?: unknown },
): void {
  checkPrincipal(method, check?.principalId);
  require(method, isText(check.purpose), 'purpose is a string that is not empty');
  require(method, check.minSeq === undefined || isSeq(check.minSeq), 'minSeq is an integer from 0 on');
}

export function checkWrite(
  method: string,
  write: { readonly principalId: unknown; readonly purposes: unknown },
): void {
  checkPrincipal(method, write?.principalId);
  const { purposes } = write;
  const named = Array.isArray(purposes) && purposes.length > 0 && purposes.every(isText);
  require(method, named, 'purposes is a list of strings that is not empty');
}

export function checkSeq(method: string, seq: unknown): void {
  require(method, isSeq(seq), 'seq is an integer from 0 on');
}

export function checkRequestId(method: string, requestId: unknown): void {
  require(method, isText(requestId) && REQUEST_ID.test(requestId), 'requestId is that of an ingest, req_…');
}

export function checkReport(method: string, requestId: unknown, outcome: unknown): void {
  checkRequestId(method, requestId);
  require(method, isText(outcome), 'outcome is a string that is not empty');
}

export function checkDeadline(method: string, deadlineMs: unknown): void {
  const holds = Number.isInteger(deadlineMs) && Number(deadlineMs) >= 1 && Number(deadlineMs) <= 60_000;
  require(method, holds, 'deadlineMs is an integer from 1 to 60000');
}

export function checkIdempotencyKey(method: string, key: unknown): void {
  const holds = isText(key) && IDEMPOTENCY_KEY.test(key);
  require(method, holds, 'idempotencyKey is 1 to 255 visible ASCII characters');
}

export function checkPurposes(method: string, purposes: unknown, principalId: unknown): void {
  const named = Array.isArray(purposes) && purposes.length <= MAX_CHECKS && purposes.every(isText);
  require(method, named, `purposes is a list of at most ${MAX_CHECKS} strings that are not empty`);
  if (principalId !== undefined) checkPrincipal(method, principalId);
}

export function checkBatch(
  method: string,
  checks: readonly { readonly principalId: unknown; readonly purpose: unknown }[],
): void {
  const hint = `one call takes ${MAX_CHECKS} checks: they are of one snapshot`;
  require(method, Array.isArray(checks) && checks.length <= MAX_CHECKS, hint);
  for (const check of checks) {
    checkCheck(method, { principalId: check?.principalId, purpose: check?.purpose });
  }
}
