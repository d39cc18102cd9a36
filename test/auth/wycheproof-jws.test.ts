import { createLocalJWKSet, errors, jwtVerify } from 'jose';
import { expect, it } from 'vitest';
import { readJws, readSigningKeys, SIGNING_ALGORITHMS } from '../../src/auth/tokens.ts';
import { describeWithTool } from '../support/tools.ts';
import { missingVectors, readWycheproof } from '../support/vectors.ts';

/** The JWS cases of C2SP/wycheproof against what judges the signature of a bearer token. */

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

/** With the public key as the provider's JWKS would hold it; a symmetric key as it is. */
async function isTaken(test: JwsTest): Promise<boolean> {
  const keys = readSigningKeys({ keys: [test.public ?? test.private] }) ?? [];
  if (typeof readJws(test.jws) === 'string') return false;
  try {
    await jwtVerify(test.jws, createLocalJWKSet({ keys: [...keys] }), {
      algorithms: [...SIGNING_ALGORITHMS],
    });
    return true;
  } catch (error) {
    // The signature was good; only what it signed is no claims.
    return error instanceof errors.JWTInvalid;
  }
}
const named = (test: JwsTest): string => `tcId ${test.tcId} ${test.comment} ${test.flags.join(',')}`;
const isOurs = ({ public: key }: JwsTest): boolean => ['ES256', 'RS256'].includes(key?.alg ?? '');

describeWithTool('a JWS and the cases of Wycheproof', missingVectors(`wycheproof/${FILE}`), () => {
  const tests = missingVectors(`wycheproof/${FILE}`) === null ? readWycheproof<JwsTest>(FILE) : [];

  it('is taken when it is valid and ES256 or RS256; an empty payload is no claims and is not', async () => {
    const valid = tests.filter((test) => test.result === 'valid' && isOurs(test));
    expect(valid.length).toBe(10);
    for (const test of valid) expect(await isTaken(test), named(test)).toBe(test.comment !== 'emptyPayload');
  });

  it('is refused when it is invalid', async () => {
    const invalid = tests.filter(({ result }) => result === 'invalid');
    expect(invalid.length).toBeGreaterThan(200);
    for (const test of invalid) expect(await isTaken(test), named(test)).toBe(false);
  });

  it('is refused when it is of another algorithm, valid or not', async () => {
    const others = tests.filter((test) => !isOurs(test));
    expect(others.length).toBeGreaterThan(90);
    for (const test of others) expect(await isTaken(test), named(test)).toBe(false);
  });
});
