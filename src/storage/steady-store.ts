import type { Knex } from 'knex';
import { z } from 'zod';
import type { SteadyMemory } from '../lib/steady-clock.ts';
import type { Database } from './db.ts';
import { newestDecision } from './inspect.ts';
import { readMeta, writeMeta } from './meta-store.ts';

/** What the steady clock of the last server knew: a start is held against it. */

const NAME = 'steady-clock';

const schema = z.object({
  steady: z.number(),
  jumps: z.array(z.object({ ms: z.number(), stood: z.number() })),
});

/** Null: no server ever wrote it, or nobody can read what is there. */
export async function readStoredSteady(database: Database): Promise<SteadyMemory | null> {
  try {
    return schema.parse(JSON.parse((await readMeta(database, NAME)) ?? 'null'));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return null;
    throw error;
  }
}

/** The same; in a database of an older release the newest decision stands for it. */
export async function readSteadyMemory(database: Database): Promise<SteadyMemory | null> {
  const stored = await readStoredSteady(database);
  if (stored) return stored;
  const newest = await newestDecision(database);
  return newest === null ? null : { steady: newest, jumps: [] };
}

export function writeSteadyMemory(tx: Knex.Transaction, { steady, jumps }: SteadyMemory): Promise<void> {
  return writeMeta(tx, NAME, JSON.stringify({ steady, jumps }));
}
