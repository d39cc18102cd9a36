import { chainLine, NO_LINES, openLine } from '../db/chained-line.ts';
import type { Database } from '../db/db.ts';
import { readMeta, writeMeta } from '../db/meta-store.ts';
import { sha256 } from '../lib/hash.ts';
import { treeIn, type WitnessedLog } from './witness-files.ts';

/** What the database knows of witness.log: an older copy of the file, or a second one, is found by it. */

const NAME = 'witnessed';

class WitnessRolledBack extends Error {
  readonly code = 'witness-rolled-back';

  constructor(origin: string) {
    super(`witness.log is older than what was cosigned of ${origin}, or is one of two copies`);
    this.name = 'WitnessRolledBack';
  }
}

const isThinned = (notes: ReadonlyMap<number, string>, size: number): boolean =>
  [...notes.keys()].every((kept) => size < kept);

/**
 * Notes the last tree of a log, unless another tree was noted that this file knows nothing of.
 * @throws {WitnessRolledBack}
 */
export async function noteWitnessed(
  database: Database,
  key: Uint8Array,
  vkey: string,
  { origin, last, notes }: WitnessedLog,
): Promise<void> {
  if (!last) return;
  const name = `${NAME} ${sha256(`${vkey}\n${origin}`).toString('hex').slice(0, 32)}`;
  await database.transaction(async (tx) => {
    const value = await readMeta({ read: tx }, name);
    if (value !== null) {
      const opened = openLine(key, name, NO_LINES, value);
      if (typeof opened !== 'object') throw new WitnessRolledBack(origin);
      const noted = JSON.parse(opened.body) as { readonly size: number; readonly root: string };
      const note = notes.get(noted.size);
      const isKnown = note
        ? treeIn(note).root.toString('base64') === noted.root
        : isThinned(notes, noted.size);
      if (!isKnown) throw new WitnessRolledBack(origin);
      // Another request of this process came first.
      if (noted.size > last.size) return;
    }
    const body = JSON.stringify({ size: last.size, root: last.root.toString('base64') });
    await writeMeta(tx, name, chainLine(key, name, NO_LINES, body));
  });
}
