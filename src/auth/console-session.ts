import { HOUR, MINUTE } from '../lib/clock.ts';
import type { Random } from '../lib/random.ts';

/** Sessions of staff in the console: server-side, revocable, 30 minutes idle and 8 hours in all. */

const CONSOLE_IDLE_MS = 30 * MINUTE;
export const CONSOLE_ABSOLUTE_MS = 8 * HOUR;

export type StaffRole = 'reviewer' | 'dpo';

export interface ConsoleSession {
  /** SHA-256 of the cookie's value; what the database holds. */
  readonly hash: string;
  readonly kid: string;
  /** Keyed reference of the person. */
  readonly actor: string;
  /** How colleagues see who holds a case. */
  readonly label: string;
  readonly roles: readonly string[];
  readonly csrf: string;
  /** Encrypted; null when the provider takes no sign-out from here. */
  readonly idToken: string | null;
  readonly createdAt: number;
  readonly seenAt: number;
  readonly expiresAt: number;
}

export function makeConsoleToken(random: Random): string {
  return random(32).toString('base64url');
}

/** Started while a clock was ahead, it would live that much longer: it counts as invalid. */
export function isLiveSession(session: ConsoleSession, now: number): boolean {
  const { createdAt, seenAt, expiresAt } = session;
  if (Math.max(createdAt, seenAt) > now + MINUTE) return false;
  return now < expiresAt && now < seenAt + CONSOLE_IDLE_MS;
}

/** A dpo may do what a reviewer may. */
export function roleOf(session: Pick<ConsoleSession, 'roles'>): StaffRole {
  return session.roles.includes('dpo') ? 'dpo' : 'reviewer';
}
