import type { Knex } from 'knex';
import type { Database } from '../db/db.ts';
import { readMeta, writeMeta } from '../db/meta-store.ts';
import { parseSteadyMemory, type SteadyMemory } from '../lib/steady-clock.ts';
import { newestDecision } from './doctor/inspect-store.ts';

/** What the steady clock of the last server knew: a start is held against it. */

const NAME = 'steady-clock';

/** Null: no server ever wrote it, or nobody can read what is there. */
export async function readStoredSteady(database: Database): Promise<SteadyMemory | null> {
  const text = await readMeta(database, NAME);
  return text === null ? null : parseSteadyMemory(text);
}

/** The same; without one, the time of the newest decision. */
export async function readSteadyMemory(database: Database): Promise<SteadyMemory | null> {
  const stored = await readStoredSteady(database);
  if (stored) return stored;
  const newest = await newestDecision(database);
  return newest === null ? null : { steady: newest, jumps: [] };
}

export function writeSteadyMemory(tx: Knex.Transaction, { steady, jumps }: SteadyMemory): Promise<void> {
  return writeMeta(tx, NAME, JSON.stringify({ steady, jumps }));
}
