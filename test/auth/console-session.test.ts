import { describe, expect, it } from 'vitest';
import {
  CONSOLE_ABSOLUTE_MS,
  type ConsoleSession,
  createConsoleToken,
  hashSecret,
  isLiveSession,
  roleOf,
} from '../../src/auth/credentials.ts';
import { HOUR, MINUTE } from '../../src/lib/clock.ts';
import { NOW } from '../support/make.ts';

const session: ConsoleSession = {
  hash: 'h',
  kid: 'acme',
  actor: 'a',
  label: 'A',
  roles: ['reviewer'],
  idToken: null,
  csrf: 'c',
  createdAt: NOW,
  seenAt: NOW,
  expiresAt: NOW + CONSOLE_ABSOLUTE_MS,
};

describe('a session of staff', () => {
  it('lives for half an hour after it was seen, and no longer than eight hours', () => {
    expect(isLiveSession(session, NOW)).toBe(true);
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
});

it('a session’s token is 32 random bytes, and its row has their hash', () => {
  const token = createConsoleToken((n) => Buffer.alloc(n, 7));
  expect(token).toBe('BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc');
  expect(hashSecret('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});

it('who is a reviewer and a dpo is a dpo', () => {
  expect(roleOf({ roles: ['reviewer'] })).toBe('reviewer');
  expect(roleOf({ roles: ['reviewer', 'dpo'] })).toBe('dpo');
});
