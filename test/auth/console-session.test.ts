import { describe, expect, it } from 'vitest';
import { CONSOLE_ABSOLUTE_MS, type ConsoleSession, isLiveSession } from '../../src/auth/console-session.ts';
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
    // Nodes differ by a little.
    expect(isLiveSession(session, NOW - 30_000)).toBe(true);
  });
});
