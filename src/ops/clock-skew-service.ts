import type { Database } from '../db/db.ts';
import type { Clock } from '../lib/clock.ts';
import { leastSkew, noteSkew } from './skew-store.ts';

export type SkewWatch = Awaited<ReturnType<typeof watchSkew>>;

/** Noted before the first bundle, so that a later, larger one is compared with it. */
export async function watchSkew(database: Database, own: number, clock: Clock) {
  let least = own;
  const note = async (): Promise<void> => {
    await noteSkew(database, own, clock());
    least = await leastSkew(database, own, clock());
  };
  await note();
  return {
    /** The smallest skew by which a bundle that is fresh now may have been claimed, on whichever node. */
    least: () => least,
    /** Says that this node judges by its skew still, and hears of the others. */
    note,
  };
}
