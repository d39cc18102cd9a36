import type { Knex } from 'knex';
import type { ContestTexts } from './contest-text.ts';
import { type ContestRow, rowToContest } from './store.ts';

/** By the keyed hash of its case key. */
export async function findCase(db: Knex, contestTexts: ContestTexts, caseHash: string) {
  const row = await db('contests').where({ case_hash: caseHash }).first<ContestRow | undefined>();
  return row ? rowToContest(row, contestTexts) : null;
}

/** Open cases that were filed from this network today; marks of earlier days are deleted. */
export async function countCases(tx: Knex.Transaction, kid: string, caseNetwork: string, today: number) {
  await tx('contests')
    .where({ kid })
    .whereNotNull('case_network')
    .where('filed_at', '<', today)
    .update({ case_network: null });
  const [row] = await tx('contests')
    .where({ kid, case_network: caseNetwork, status: 'open' })
    .count({ n: '*' });
  return Number(row?.['n'] ?? 0);
}
