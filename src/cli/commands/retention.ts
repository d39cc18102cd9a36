import { stateMacs } from '../../consent/state-mac-service.ts';
import type { Database } from '../../db/db.ts';
import { isoTime } from '../../lib/clock.ts';
import { Unavailable } from '../../lib/errors.ts';
import { reasonOf } from '../../lib/jobs.ts';
import { makeSteadyClock } from '../../lib/steady-clock.ts';
import { TOLD_AHEAD_MS } from '../../ops/clock-watch.ts';
import { readStoredSteady } from '../../ops/job-store.ts';
import { runRetention } from '../../ops/retention.ts';
import type { Actions } from '../define.ts';
import { failed, print, say, table } from '../output.ts';
import { type DestructiveFlags, onStore } from '../run.ts';

const COUNTED = [
  'decisions',
  'contests',
  'links',
  'sightings',
  'credentials',
  'visitorIndex',
  'audit',
] as const;

/** What the last server believed holds for a command too, which cannot wait and see whether the clock stands. */
async function believedTime(database: Database, trusted: boolean): Promise<number> {
  const wall = Date.now();
  const memory = trusted ? null : await readStoredSteady(database);
  const steady = makeSteadyClock(
    () => wall,
    () => 0,
    memory,
  );
  const now = steady.now();
  if (wall - now > TOLD_AHEAD_MS)
    say(
      `gpd: the clock is at ${isoTime(wall)}, and the server last trusted ${isoTime(now)}, which retention uses. If the clock is right, let gpd serve run for six hours, or pass --yes`,
    );
  return now;
}

const run = onStore((options: DestructiveFlags) => async (store) => {
  const { database } = store;
  const macs = await stateMacs(store);
  const now = await believedTime(database, options.yes === true);
  const { results, failures } = await runRetention(
    database,
    now,
    options.dryRun,
    (kid) => macs.get(kid)?.stateMac,
  );
  print(results, () => [
    ...table([
      ['TENANT', 'DECISIONS', 'CONTESTS', 'LINKS', 'SIGHTINGS', 'PASSKEYS', 'INDEX', 'AUDIT'],
      ...results.map((row) => [row.kid, ...COUNTED.map((name) => `${row[name]}`)]),
    ]),
    ...(options.dryRun === true ? ['Nothing was changed.'] : []),
  ]);
  const [first] = failures;
  if (!first) return;
  // The database's own trouble, and a time to try again.
  if (failures.every(({ error }) => error instanceof Unavailable)) throw first.error;
  const named = failures.map(({ kid, error }) => `${kid ?? 'listing the tenants'} (${reasonOf(error)})`);
  throw failed(`retention failed for ${named.join(', ')}`);
});

export const ACTIONS: Actions = { run };
