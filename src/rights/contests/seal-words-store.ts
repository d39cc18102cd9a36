import type { Knex } from 'knex';
import type { Database } from '../../db/db.ts';
import type { ContestWords } from './contest-text.ts';
import { lockContest, updateContest } from './store.ts';

const SEALED_AT_ONCE = 100;

/** Seals what an older release wrote in the clear. @returns how many contests there were */
export async function sealOldWords(database: Database, words: ContestWords, kid: string): Promise<number> {
  const inTheClear = (db: Knex): Knex.QueryBuilder =>
    db('contests')
      .where({ kid })
      .where((row) => {
        for (const column of ['statement', 'question', 'reason', 'proposed_reason'])
          row.orWhereNotNull(column);
      });
  for (let total = 0; ; ) {
    const ids = (await inTheClear(database.read).limit(SEALED_AT_ONCE).pluck('contest_id')) as string[];
    for (const contestId of ids) {
      await database.transaction(async (tx) => {
        const contest = await lockContest(tx, words, contestId);
        if (contest) await updateContest(tx, words, contest);
      });
    }
    total += ids.length;
    if (ids.length < SEALED_AT_ONCE) return total;
  }
}
