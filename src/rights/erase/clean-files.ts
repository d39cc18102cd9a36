import { statSync } from 'node:fs';
import { fileHolds, type Needles } from '../../db/byte-scan.ts';
import type { Database } from '../../db/db.ts';
import { type Group, makeGroup } from '../../db/group-commit.ts';

/** No byte of what was erased is left in the files: emptied, looked at, and written anew where that was not enough. */

export interface CleanDeps {
  readonly database: Database;
}

/** Larger files are left to the job, which writes them anew without looking. */
const MAX_SCAN_BYTES = 2 * 1024 * 1024 * 1024;

/** Ids to look for; null: they are not known any more, and the file is written anew in any case. */
export type Wanted = Needles | null;

/** Empties the log and looks whether a byte is left; if so, the file is written anew. */
async function leavesNothing(deps: CleanDeps, wanted: readonly Wanted[]): Promise<boolean> {
  const { database } = deps;
  const { file } = database;
  if (!(await database.truncateLog())) return false;
  if (file === null) return true;
  if (!wanted.includes(null)) {
    const known = wanted.filter((needles) => needles !== null);
    if (statSync(file).size > MAX_SCAN_BYTES) return false;
    if (!(await fileHolds(file, union(known)))) return true;
  }
  try {
    await database.vacuum();
  } catch {
    return false;
  }
  return database.truncateLog();
}

function union(all: readonly Needles[]): Needles {
  return {
    requests: new Set(all.flatMap((needles) => [...needles.requests])),
    others: all.flatMap((needles) => needles.others),
  };
}

/** One at a time; all erasures that wait meanwhile share the next. */
export function makeCleaner(deps: CleanDeps): Group<Wanted, boolean> {
  return makeGroup<Wanted, boolean>({
    name: 'clean',
    run: async (wanted) => {
      const clean = await leavesNothing(deps, wanted);
      return wanted.map(() => clean);
    },
    maxBatch: 1000,
    maxWaiting: 10_000,
  });
}
