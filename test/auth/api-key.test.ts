import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { bearerToken, createApiKeySecret, hashSecret } from '../../src/auth/credentials.ts';
import { KEY_SCOPES } from '../../src/schema/route.ts';
import { seededRandom } from '../support/make.ts';

describe('createApiKeySecret', () => {
  it('names the scope in front of 32 random bytes', () => {
    const random = seededRandom('test/auth/api-key');
    const secrets = KEY_SCOPES.map((scope) => createApiKeySecret(scope, random));
    expect(secrets.map((secret) => secret.slice(0, 7))).toEqual(['gpd_pk_', 'gpd_sk_', 'gpd_ro_', 'gpd_op_']);
    for (const secret of secrets) expect(Buffer.from(secret.slice(7), 'base64url')).toHaveLength(32);
    expect(new Set(secrets.map((secret) => secret.slice(7))).size).toBe(KEY_SCOPES.length);
  });

  it('asks for 32 bytes, no fewer', () => {
    const sizes: number[] = [];
    createApiKeySecret('secret', (size) => {
      sizes.push(size);
      return Buffer.alloc(size);
    });
    expect(sizes).toEqual([32]);
  });
});

describe('hashSecret', () => {
  it('is the SHA-256 of the whole key in lower-case hex', () => {
    const secret = createApiKeySecret('secret', seededRandom('hash'));
    expect(hashSecret(secret)).toBe(createHash('sha256').update(secret).digest('hex'));
    expect(hashSecret(secret)).not.toBe(hashSecret(secret.replace('gpd_sk_', 'gpd_op_')));
  });
});

describe('bearerToken', () => {
  it.each<[string | undefined, string | null]>([
    ['Bearer abc', 'abc'],
    ['bearer abc', 'abc'],
    ['BEARER a.b-c_d~e+f/g=', 'a.b-c_d~e+f/g='],
    [`Bearer ${'x'.repeat(512)}`, 'x'.repeat(512)],
    [undefined, null],
    ['', null],
    ['Bearer', null],
    ['Bearer ', null],
    ['Bearer  abc', 'abc'],
    ['Bearer abc def', null],
    ['Bearer abc\n', null],
    [' Bearer abc', null],
    ['Basic abc', null],
    ['abc', null],
    ['Bearer äbc', null],
    [`Bearer ${'x'.repeat(513)}`, null],
  ])('of %j is %j', (header, token) => {
    expect(bearerToken(header)).toBe(token);
  });
});
