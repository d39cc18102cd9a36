import type { Database } from '../db/db.ts';
import { verifyCheckpoint } from '../ledger/checkpoint.ts';
import { appendLeaves, EMPTY_FRONTIER, type Frontier, frontierRoot } from '../ledger/frontier.ts';
import { leafHash } from '../ledger/merkle.ts';
import { parseVkey } from '../ledger/vkey.ts';
import { checkAuditSeals } from './audit-seal-store.ts';
import { type LogHead, makeHashReader, readEntries, readHead } from './read-store.ts';
import { checkSeals } from './verdict-seal-store.ts';

/** `gpd consent verify`: the whole log recomputed from its entries, trusting nothing that was stored beside them. */

export interface LogCheck {
  readonly size: number;
  /** base64, as a checkpoint says it. */
  readonly root: string;
  readonly ok: boolean;
  /** What does not fit, in words. */
  readonly problems: readonly string[];
}

const PAGE = 1000;

interface Walk {
  readonly frontier: Frontier;
  readonly problems: string[];
  /** The root at the size of the stored checkpoint. */
  readonly checkpointRoot: Buffer | null;
}

async function walk(
  database: Database,
  kid: string,
  head: LogHead,
  onProgress: (done: number) => void,
): Promise<Walk> {
  const blocks = makeHashReader(database, kid);
  const problems: string[] = [];
  let frontier = EMPTY_FRONTIER;
  let checkpointRoot: Buffer | null = null;
  // Not past the head: entries that are appended meanwhile belong to the next check.
  while (frontier.size < head.size) {
    const page = await readEntries(database, kid, frontier.size, Math.min(PAGE, head.size - frontier.size));
    if (page.length === 0) break;
    for (const { seq, hash, entry } of page) {
      if (seq !== frontier.size) problems.push(`entry ${frontier.size} is missing`);
      const leaf = leafHash(Buffer.from(entry));
      if (leaf.toString('hex') !== hash) problems.push(`entry ${seq} was changed`);
      const { frontier: next, completed } = appendLeaves(frontier, [leaf]);
      frontier = next;
      for (const block of completed) {
        const [stored] = await blocks.read(block.level, block.index, block.index + 1).catch(() => []);
        if (!stored?.equals(block.hash))
          problems.push(`block ${block.index} of level ${block.level} was changed`);
      }
      if (frontier.size === head.checkpoint?.size) checkpointRoot = frontierRoot(frontier);
      if (problems.length > 0) return { frontier, problems, checkpointRoot };
    }
    onProgress(frontier.size);
  }
  return { frontier, problems, checkpointRoot };
}

function checkCheckpoint(head: LogHead, root: Buffer | null): string[] {
  if (!head.checkpoint) return [];
  const key = parseVkey(head.vkey);
  const verified = key && verifyCheckpoint(head.checkpoint.text, key);
  if (!verified?.ok) return ['the stored checkpoint is not signed by the key of this log'];
  return root && verified.checkpoint.root.equals(root)
    ? []
    : ['the stored checkpoint is of another log than these entries'];
}

/** Null: no such tenant. Stops at the first entry that does not fit. */
export async function verifyLog(
  database: Database,
  kid: string,
  onProgress: (done: number) => void = () => {},
): Promise<LogCheck | null> {
  const head = await readHead(database, kid);
  if (!head) return null;
  const { frontier, problems, checkpointRoot } = await walk(database, kid, head, onProgress);
  if (problems.length === 0) {
    if (frontier.size < head.size) problems.push(`the last ${head.size - frontier.size} entries are missing`);
    else if (!frontierRoot(frontier).equals(head.root)) problems.push('the head of the log was changed');
    problems.push(...checkCheckpoint(head, checkpointRoot), ...(await checkSeals(database, kid)));
    problems.push(...(await checkAuditSeals(database, kid)));
  }
  // A tenant that is being removed loses its head first, and then its rows.
  if (problems.length > 0 && !(await readHead(database, kid))) return null;
  const root = frontierRoot(frontier).toString('base64');
  return { size: frontier.size, root, ok: problems.length === 0, problems };
}
