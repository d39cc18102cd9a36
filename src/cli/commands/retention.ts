import type { Command } from 'commander';
import { stateMacs } from '../../consent/state-mac-store.ts';
import { confirmTime, latestJobTime, readNewestTime } from '../../db/clock-rule-store.ts';
import type { Database } from '../../db/engine.ts';
import { isoTime } from '../../lib/clock.ts';
import { Unavailable } from '../../lib/errors.ts';
import { reasonOf } from '../../lib/jobs.ts';
import { runRetention } from '../../ops/housekeeping-service.ts';
import { addCommand, type CommandContext } from '../command-service.ts';
import { type DestructiveFlags, failed, print, say, tableLines } from '../io-service.ts';
import { createCount } from '../progress-service.ts';

export function define(retention: Command): void {
  addCommand(retention, 'run', run, {
    about: 'delete what is older than each tenant keeps (the server does it every hour)',
    example: 'gpd retention run --dry-run',
  })
    .option('--dry-run', 'show how much would be deleted; change nothing')
    .option('--yes', "trust the clock even if it is ahead of the last server's");
}

/**
 * Uses the time that a server's jobs use, which a clock far ahead cannot move by much, unless --yes confirms
 * the clock.
 */
async function timeOfRun(database: Database, isRight: boolean): Promise<number> {
  const wall = Date.now();
  const now = isRight ? wall : latestJobTime(wall, await readNewestTime(database));
  if (now < wall)
    say(
      `gpd: the clock is at ${isoTime(wall)}, over a day past the newest time of a server; retention uses ${isoTime(now)}. If the clock is right, pass --yes`,
    );
  return now;
}

/** Rows that steps delete; visitor ids are deleted with their devices. */
const sumOf = (results: Awaited<ReturnType<typeof runRetention>>['results']): number =>
  results
    .flatMap(({ kid: _kid, visitorIndex: _with, ...counts }) => Object.values(counts))
    .reduce((sum, count) => sum + count, 0);

async function run({ open }: CommandContext, options: DestructiveFlags): Promise<void> {
  const store = await open();
  const { database } = store;
  const macs = await stateMacs(store);
  const isRight = options.yes === true;
  const now = await timeOfRun(database, isRight);
  if (isRight && options.dryRun !== true) await confirmTime(database, now);
  const { onProgress, end } = createCount('rows');
  // The number of due rows, to say how much is left.
  const total = options.dryRun === true ? 0 : sumOf((await runRetention(database, now, true)).results);
  let done = 0;
  const onStep = (deleted: number): void => {
    done += deleted;
    onProgress(done, Math.max(total, done));
  };
  const { results, failures } = await runRetention(
    database,
    now,
    options.dryRun,
    (kid) => macs.get(kid)?.stateMac,
    onStep,
  ).finally(end);
  print(results, () => [
    ...tableLines(results, {
      TENANT: 'kid',
      DECISIONS: 'decisions',
      CONTESTS: 'contests',
      LINKS: 'links',
      SIGHTINGS: 'sightings',
      PASSKEYS: 'credentials',
      INDEX: 'visitorIndex',
      AUDIT: 'audit',
    }),
    ...(options.dryRun === true ? ['Nothing was changed.'] : []),
  ]);
  const [first] = failures;
  if (!first) return;
  // Thrown as it is, so that the exit code says to try again.
  if (failures.every(({ error }) => error instanceof Unavailable)) throw first.error;
  const named = failures.map(({ kid, error }) => `${kid ?? 'listing the tenants'} (${reasonOf(error)})`);
  throw failed(`retention failed for ${named.join(', ')}`);
}
