import type { Database } from '../../src/db/engine.ts';
import { lockHead } from '../../src/log/entries-store.ts';
import { type ShredTarget, shredWithin } from '../../src/rights/erase/shred-store.ts';

/** Destroys the key of a principal in a separate transaction. */
export const shredPrincipal = (database: Database, target: ShredTarget, now: number) =>
  database.transaction(async (tx) => {
    await lockHead(tx, target.kid);
    return shredWithin(tx, target, now);
  });
