import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import createTypes from 'openapi-typescript';
import { expect, it } from 'vitest';

/** docs/openapi.json is what integrators give to a generator: its names and shapes make a client that compiles. */

const run = promisify(execFile);
const compiler = fileURLToPath(new URL('../../../node_modules/typescript/bin/tsc', import.meta.url));

const CLIENT = `
import type { components, operations, paths } from './api';

type Operation = keyof operations;
type Sent<Name extends Operation> = operations[Name] extends {
  requestBody: { content: { 'application/json': infer Body } };
} ? Body : never;
type Answered<Name extends Operation, Status extends keyof operations[Name]['responses']> =
  operations[Name]['responses'][Status] extends { content: { 'application/json': infer Body } } ? Body : never;
type Refusal = components['schemas']['ErrorBody'];

const check: Sent<'checkConsent'> = { principalId: 'u-1', purpose: 'newsletter' };
export const mayProcess = (answer: Answered<'checkConsent', 200>): boolean =>
  answer.allowed && answer.reason === 'granted';

const grant: Sent<'grantConsent'> = { principalId: 'u-1', purposes: ['newsletter'], gpc: false };
const key: NonNullable<operations['grantConsent']['parameters']['header']> = { 'Idempotency-Key': 'order-1' };
export const seqOf = (written: Answered<'grantConsent', 201>): number => written.entries[0]?.seq ?? written.seq;

export const classOf = ({ class: name }: Answered<'getDecision', 200>): 'human' | 'unknown' | null =>
  name === 'human' || name === 'unknown' ? name : null;
export const receiptOf = (erased: Answered<'erasePrincipal', 200>): string => erased.receiptId;
export const isErased = (refusal: Answered<'grantConsent', 409>): boolean => refusal.error === 'erased';
export const wordsOf = ({ error, message, details = [] }: Refusal): string =>
  [message ?? error, ...details].join(': ');
export const route: keyof paths = '/v1/consent/can-process';

// @ts-expect-error a field that the body does not have
const unknownField: Sent<'openSession'> = { principalId: 'u-1', purpose: 'x' };
// @ts-expect-error an outcome that is none
const outcome: Sent<'resolveContest'> = { contestId: 'con_1', outcome: 'perhaps', reason: '' };

export const sent = [check, grant, key, unknownField, outcome];
`;

it('makes a client that compiles and knows each operation, body and error', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gpd-openapi-'));
  try {
    const types = await createTypes(new URL('../../../docs/openapi.json', import.meta.url));
    await writeFile(join(folder, 'api.d.ts'), types);
    await writeFile(join(folder, 'client.ts'), CLIENT);
    const strict = ['--strict', '--noEmit', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess'];
    const tsc = [compiler, ...strict, '--types', '', 'client.ts'];
    const result = await run(process.execPath, tsc, { cwd: folder }).catch(
      (error: { stdout: string }) => error,
    );
    expect(result.stdout).toBe('');
  } finally {
    await rm(folder, { recursive: true });
  }
});
