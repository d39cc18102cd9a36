import { describe, expect, it } from 'vitest';
import {
  bearerToken,
  CONSOLE_ABSOLUTE_MS,
  type ConsoleSession,
  createApiKeySecret,
  createConsoleToken,
  hashSecret,
  isLiveSession,
  roleOf,
} from '../../src/auth/credentials.ts';
import { HOUR, MINUTE } from '../../src/lib/clock.ts';
import { KEY_SCOPES } from '../../src/schema/route.ts';
import { NOW, seededRandom } from '../support/make.ts';

/** API keys, and sessions of staff. */

it('a key names its scope in front of 32 random bytes, a session’s token is 32 bytes, and their hash is SHA-256', () => {
  const random = seededRandom('test/auth/api-key');
  const secrets = KEY_SCOPES.map((scope) => createApiKeySecret(scope, random));
  expect(secrets.map((secret) => secret.slice(0, 7))).toEqual(['gpd_pk_', 'gpd_sk_', 'gpd_ro_', 'gpd_op_']);
  for (const secret of secrets) expect(Buffer.from(secret.slice(7), 'base64url')).toHaveLength(32);
  expect(new Set(secrets.map((secret) => secret.slice(7))).size).toBe(KEY_SCOPES.length);
  const token = createConsoleToken((n) => Buffer.alloc(n, 7));
  expect(token).toBe('BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc');
  expect(hashSecret('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});

describe('bearerToken', () => {
  it.each<[string | undefined, string | null]>([
    ['Bearer abc', 'abc'],
    ['bearer  abc', 'abc'],
    ['BEARER a.b-c_d~e+f/g=', 'a.b-c_d~e+f/g='],
    [`Bearer ${'x'.repeat(512)}`, 'x'.repeat(512)],
    [`Bearer ${'x'.repeat(513)}`, null],
    [undefined, null],
    ['Bearer ', null],
    ['Bearer abc def', null],
    ['Bearer abc\n', null],
    [' Bearer abc', null],
    ['Basic abc', null],
    ['abc', null],
    ['Bearer äbc', null],
  ])('of %j is %j', (header, token) => {
    expect(bearerToken(header)).toBe(token);
  });
});

describe('a session of staff', () => {
  const session: ConsoleSession = {
    hash: 'h',
    kid: 'acme',
    actor: 'a',
    label: 'A',
    roles: ['reviewer'],
    provider: null,
    idToken: null,
    csrf: 'c',
    createdAt: NOW,
    seenAt: NOW,
    expiresAt: NOW + CONSOLE_ABSOLUTE_MS,
  };

  it('lives for half an hour after it was seen, and no longer than eight hours', () => {
    expect(isLiveSession(session, NOW + 30 * MINUTE - 1)).toBe(true);
    expect(isLiveSession(session, NOW + 30 * MINUTE)).toBe(false);
    const busy = { ...session, seenAt: NOW + CONSOLE_ABSOLUTE_MS - 1 };
    expect(isLiveSession(busy, NOW + CONSOLE_ABSOLUTE_MS - 1)).toBe(true);
    expect(isLiveSession(busy, NOW + CONSOLE_ABSOLUTE_MS)).toBe(false);
  });

  it('of a clock that was an hour ahead is none, whenever it was begun or seen', () => {
    expect(isLiveSession(session, NOW - HOUR)).toBe(false);
    expect(isLiveSession({ ...session, createdAt: NOW - 2 * HOUR }, NOW - HOUR)).toBe(false);
    // The clocks of nodes differ slightly.
    expect(isLiveSession(session, NOW - MINUTE)).toBe(true);
    expect(isLiveSession(session, NOW - MINUTE - 1)).toBe(false);
  });

  it('of who is a reviewer and a dpo is a dpo’s', () => {
    expect(roleOf({ roles: ['reviewer'] })).toBe('reviewer');
    expect(roleOf({ roles: ['reviewer', 'dpo'] })).toBe('dpo');
  });
});
