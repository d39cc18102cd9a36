import { isoTime, MINUTE } from '../../lib/clock.ts';
import { TOLD_AHEAD_MS, TOLD_FORGOTTEN_MS } from '../clock-watch.ts';
import { type Check, type Finding, fail, pass, skipped, span, warn } from './check.ts';
import type { Facts } from './facts.ts';

/** The machine's clock, and what the server makes of it (ADR 0006). */

/** gpd was not written before this. */
const FIRST_DAY = Date.parse('2026-01-01T00:00:00Z');

const REMEDY = 'Set the clock by NTP (timedatectl set-ntp true).';

function judgeClock({ now, database }: Facts): Finding {
  if (now < FIRST_DAY) return fail('the clock stands before gpd was written', REMEDY);
  const newest = 'failure' in database ? null : database.newestDecisionAt;
  if (newest !== null && newest > now + 5 * MINUTE)
    return fail(`the newest decision lies ${span(newest - now)} in the future`, REMEDY);
  return pass('the clock is plausible');
}

function judgeAhead({ database }: Facts): Finding {
  if ('failure' in database) return skipped('the database cannot be read');
  const { clockAheadMs } = database;
  if (clockAheadMs === null) return skipped('no server has run its jobs yet');
  return clockAheadMs > TOLD_AHEAD_MS
    ? warn(
        `the clock is ${span(clockAheadMs)} ahead of the last time that the server believes`,
        'Check the clock (timedatectl). If it is right, wait: retention, sealing and key destruction catch up after six hours.',
      )
    : pass('the server believes the clock');
}

function judgeForgotten({ now, database }: Facts): Finding {
  if ('failure' in database) return skipped('the database cannot be read');
  const { forgottenTo } = database;
  return forgottenTo !== null && forgottenTo - now > TOLD_FORGOTTEN_MS
    ? fail(
        `the server ran while a clock was ahead: it refuses bundles as stale until ${isoTime(forgottenTo)}`,
        `Check the clock of every node. ${REMEDY}`,
      )
    : pass('no clock was ahead while nonces were forgotten');
}

export const CLOCK_CHECKS: readonly Check<Facts>[] = [
  { id: 'host.clock', judge: judgeClock },
  { id: 'clock.ahead', judge: judgeAhead },
  { id: 'clock.forgotten-ahead', judge: judgeForgotten },
];
