import type { Knex } from 'knex';
import { type Clock, DAY, HOUR, isoTime, MINUTE } from '../lib/clock.ts';
import { Unavailable } from '../lib/errors.ts';
import type { Database, Reader } from './engine.ts';
import { dropMeta, readMetaNumber, writeMeta } from './meta-store.ts';
import { runSql, type Transaction } from './sql.ts';

/**
 * The one rule about clocks (ADR 0026). The database remembers the newest time that a server committed.
 * - Each round of housekeeping moves it up to the clock. A clock that is over a day ahead moves it by a day
 *   an hour, for the first time after an hour. Acts that cannot be taken back (retention, purges, anchoring,
 *   destroying keys) run at that time, never beyond it.
 * - A server whose clock is behind it by more than the skew takes no bundles.
 * - A nonce is forgotten by the time in its bundle, and no older bundle is taken again, whatever a clock
 * says.
 */

const NEWEST = 'newest-time';
/** The clock when it was first seen over a day ahead, or last moved the newest time by a day. */
const AHEAD_SINCE = 'clock-ahead-since';
/** Nonces of bundles that are dated earlier may be forgotten. */
export const FORGOTTEN = 'nonces-forgotten-to';
/** A passkey's challenge lives for six minutes, and its claim is a nonce too. */
const MIN_KEPT_MS = 15 * MINUTE;

/** Never lowers the value. */
async function raise(tx: Transaction, name: string, to: number): Promise<void> {
  await runSql(
    tx,
    `INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value
      WHERE CAST(meta.value AS bigint) < CAST(excluded.value AS bigint)`,
    [name, String(to)],
  );
}

/** Null: no server has run its jobs yet. */
export const readNewestTime = (database: Reader): Promise<number | null> => readMetaNumber(database, NEWEST);

/** Bundles that are dated earlier are stale; null: nothing was forgotten yet. */
export const readForgottenTo = (database: Database): Promise<number | null> =>
  readMetaNumber(database, FORGOTTEN);

/** The latest time at which something that cannot be taken back may run. */
export const latestJobTime = (now: number, newest: number | null): number =>
  newest === null ? now : Math.min(now, newest + DAY);

/**
 * Moves the newest committed time up to the clock as far as the rule allows.
 * @returns the newest committed time
 */
export function commitTime(database: Database, now: number): Promise<number> {
  return database.transaction(async (tx) => {
    // One statement, because two jobs may commit the time together: with values of two moments one of them
    // would run a day behind the other.
    const rows = await runSql<{ name: string; value: string }>(
      tx,
      'SELECT name, value FROM meta WHERE name IN (?, ?)',
      [NEWEST, AHEAD_SINCE],
    );
    const found = new Map(rows.map(({ name, value }) => [name, Number(value)]));
    const [newest, since] = [found.get(NEWEST) ?? null, found.get(AHEAD_SINCE) ?? null];
    if (newest !== null && now > newest + DAY) {
      const stood = since === null ? -1 : now - since;
      if (stood >= 0 && stood < HOUR) return newest;
      await writeMeta(tx, AHEAD_SINCE, String(now));
      // Nobody checked for hours, or the clock jumped again: the hour starts over.
      if (stood < 0 || stood > 2 * HOUR) return newest;
    } else if (since !== null) await dropMeta(tx, AHEAD_SINCE);
    const to = latestJobTime(now, newest);
    if (newest !== null && to <= newest) return newest;
    await raise(tx, NEWEST, to);
    return to;
  });
}

/** An operator confirms that the clock is right. */
export const confirmTime = (database: Database, now: number): Promise<void> =>
  database.transaction((tx) => raise(tx, NEWEST, now));

/** `clock-ahead`: by more than a day. `clock-behind`: by more than the skew. `clock-right`: neither. */
export type ClockEvent = 'clock-ahead' | 'clock-behind' | 'clock-right';

export type ClockRule = Awaited<ReturnType<typeof followClock>>;

/**
 * The rule on a server, which learns once a minute what other nodes committed.
 * @throws {Error} when the database cannot be read
 */
export async function followClock(database: Database, clock: Clock, skewMs: number) {
  let newest = await readNewestTime(database);
  const isBehind = (): boolean => newest !== null && clock() < newest - skewMs;
  const reason = (): string => `the clock is behind the newest committed time, ${isoTime(newest ?? 0)}`;
  return {
    skewMs,
    /** Commits the current time. `at` is the time for work that cannot be taken back. */
    async commit() {
      const now = clock();
      newest = await commitTime(database, now);
      const ahead = now - newest;
      const event: ClockEvent =
        ahead < -skewMs ? 'clock-behind' : ahead > DAY ? 'clock-ahead' : 'clock-right';
      return { at: Math.min(now, newest), event, offMs: Math.abs(ahead) };
    },
    /** Why this node is not ready. */
    notReadyReasons: (): readonly string[] => (isBehind() ? [`clock: ${reason()}`] : []),
    /** @throws {Unavailable} when the clock is behind by more than the skew */
    requireClock: (): void => {
      if (isBehind()) throw new Unavailable(reason());
    },
  };
}

/** The date of the oldest nonces that are kept: each for at least twice the skew (contract section 5). */
export const keepNoncesFrom = (at: number, skewMs: number): number => at - Math.max(3 * skewMs, MIN_KEPT_MS);

/** Nonces of bundles that are dated before `to` may be deleted. */
export const raiseForgotten = (tx: Knex.Transaction, to: number): Promise<void> => raise(tx, FORGOTTEN, to);

/**
 * Bundles that are dated earlier are stale. Call it where nobody else writes, or after a write: then it sees
 * what another node forgot.
 */
export async function readForgotten(tx: Transaction): Promise<number> {
  const [row] = await runSql<{ value: string }>(tx, 'SELECT value FROM meta WHERE name = ?', [FORGOTTEN]);
  return row ? Number(row.value) : Number.NEGATIVE_INFINITY;
}
