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
  const before = problems.found.length;
  let frontier = EMPTY_FRONTIER;
  // Stops at the head: entries that are appended meanwhile belong to the next check.
  while (frontier.size < head.size) {
    const page = await readMacedEntries(
      database,
      kid,
      frontier.size,
      Math.min(PAGE, head.size - frontier.size),
    );
    if (page.length === 0) break;
    for (const { seq, hash, entry } of page) {
      if (seq !== frontier.size)
        problems.add('entry-changed', `entry ${frontier.size} is missing`, frontier.size);
      const leaf = leafHash(Buffer.from(entry));
      if (leaf.toString('hex') !== hash) problems.add('entry-changed', `entry ${seq} was changed`, seq);
      const { frontier: next, completed } = appendLeaves(frontier, [leaf]);
      frontier = next;
      for (const { level, index, hash: block } of completed) {
        const [stored] = await blocks.read(level, index, index + 1).catch(() => []);
        if (!stored?.equals(block))
          problems.add('entry-changed', `block ${index} of level ${level} was changed`, seq);
      }
      if (sizes.has(frontier.size)) roots.set(frontier.size, frontierRoot(frontier));
      if (problems.found.length > before) return { frontier, roots };
    }
    await onPage(page);
  }
  const missing = head.size - frontier.size;
  if (missing > 0) problems.add('entry-changed', `the last ${missing} entries are missing`, frontier.size);
  else if (!frontierRoot(frontier).equals(head.root))
    problems.add('entry-changed', 'the head of the log was changed');
  return { frontier, roots };
}
