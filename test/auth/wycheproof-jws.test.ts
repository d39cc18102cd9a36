import { createLocalJWKSet, errors, jwtVerify } from 'jose';
import { expect, it } from 'vitest';
import { readJws, readSigningKeys, SIGNING_ALGORITHMS } from '../../src/auth/tokens.ts';
import { describeWithTool } from '../support/tools.ts';
import { missingVectors, readWycheproof } from '../support/vectors.ts';

/** Runs the JWS cases of C2SP/wycheproof through the code that verifies bearer tokens. */

const FILE = 'json_web_signature_test.json';

interface JwsTest {
  readonly tcId: number;
  readonly comment: string;
  readonly flags: readonly string[];
  readonly jws: string;
  readonly public?: { readonly alg?: string; readonly crv?: string };
  readonly private?: object;
  readonly result: 'valid' | 'invalid';
}

/** Uses the public key of the case as if the provider published it, or else its symmetric key. */
async function isAccepted(test: JwsTest): Promise<boolean> {
  const keys = readSigningKeys({ keys: [test.public ?? test.private] }) ?? [];
  if (typeof readJws(test.jws) === 'string') return false;
  try {
    await jwtVerify(test.jws, createLocalJWKSet({ keys: [...keys] }), {
      algorithms: [...SIGNING_ALGORITHMS],
    });
    return true;
  } catch (error) {
    // The signature was valid, but the payload contains no claims.
    return error instanceof errors.JWTInvalid;
  }
}
const describeTest = (test: JwsTest): string => `tcId ${test.tcId} ${test.comment} ${test.flags.join(',')}`;
const isOurs = ({ public: key }: JwsTest): boolean => ['ES256', 'RS256'].includes(key?.alg ?? '');

describeWithTool('a JWS and the cases of Wycheproof', missingVectors(`wycheproof/${FILE}`), () => {
  const tests = missingVectors(`wycheproof/${FILE}`) === null ? readWycheproof<JwsTest>(FILE) : [];

  it('is taken when it is valid and ES256 or RS256; an empty payload is no claims and is not', async () => {
    const valid = tests.filter((test) => test.result === 'valid' && isOurs(test));
    expect(valid.length).toBe(10);
    for (const test of valid)
      expect(await isAccepted(test), describeTest(test)).toBe(test.comment !== 'emptyPayload');
  });

  it('is refused when it is invalid', async () => {
    const invalid = tests.filter(({ result }) => result === 'invalid');
    expect(invalid.length).toBeGreaterThan(200);
    for (const test of invalid) expect(await isAccepted(test), describeTest(test)).toBe(false);
  });

  it('is refused when it is of another algorithm, valid or not', async () => {
    const foreignTests = tests.filter((test) => !isOurs(test));
    expect(foreignTests.length).toBeGreaterThan(90);
    for (const test of foreignTests) expect(await isAccepted(test), describeTest(test)).toBe(false);
  });
});
