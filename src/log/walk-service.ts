import type { Database } from '../db/engine.ts';
import { appendLeaves, EMPTY_FRONTIER, frontierRoot, leafHash } from '../ledger/merkle.ts';
import { createHashReader, type LogHead, type MacedRow, readMacedEntries } from './entries-store.ts';
import type { Problems } from './problems.ts';

/** Hashes every entry of a log again, in order, and trusts no stored hash. */

const PAGE = 1000;

export interface WalkOptions {
  /** Sizes whose root the caller needs, from checkpoints. */
  readonly sizes: ReadonlySet<number>;
  readonly problems: Problems;
  /** Called with each page of correct entries. */
  readonly onPage: (page: readonly MacedRow[]) => Promise<void>;
}

/** Stops at the first entry that does not match: nothing after it can be compared with the tree. */
export async function walkLog(
  database: Database,
  kid: string,
  head: LogHead,
  { sizes, problems, onPage }: WalkOptions,
) {
  const blocks = createHashReader(database, kid);
  const roots = new Map<number, Buffer>();
  let frontier = EMPTY_FRONTIER;
  let isChanged = false;
  const report = (problem: string, seq: number): void => {
    isChanged = true;
    problems.add('entry-changed', problem, seq);
  };
  let checked: Promise<void> = Promise.resolve();
  // Stops at the head: entries that are appended meanwhile belong to the next check.
  while (frontier.size < head.size) {
    const limit = Math.min(PAGE, head.size - frontier.size);
    const page = await readMacedEntries(database, kid, frontier.size, limit);
    if (page.length === 0) break;
    for (const { seq, hash, entry } of page) {
      if (seq !== frontier.size) report(`entry ${frontier.size} is missing`, frontier.size);
      const leaf = leafHash(Buffer.from(entry));
      if (leaf.toString('hex') !== hash) report(`entry ${seq} was changed`, seq);
      const { frontier: next, completed } = appendLeaves(frontier, [leaf]);
      frontier = next;
      for (const { level, index, hash: block } of completed) {
        const [stored] = await blocks.read(level, index, index + 1).catch(() => []);
        if (!stored?.equals(block)) report(`block ${index} of level ${level} was changed`, seq);
      }
      if (sizes.has(frontier.size)) roots.set(frontier.size, frontierRoot(frontier));
      if (isChanged) break;
    }
    await checked;
    if (isChanged) return { frontier, roots };
    // The database reads the next page meanwhile. The next `await` throws what this rejects with.
    checked = onPage(page);
    checked.catch(() => {});
  }
  await checked;
  const missing = head.size - frontier.size;
  if (missing > 0) problems.add('entry-changed', `the last ${missing} entries are missing`, frontier.size);
  else if (!frontierRoot(frontier).equals(head.root))
    problems.add('entry-changed', 'the head of the log was changed');
  return { frontier, roots };
}
