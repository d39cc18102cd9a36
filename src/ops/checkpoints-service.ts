import type { Database } from '../db/engine.ts';
import { listKids } from '../db/meta-store.ts';
import type { MasterKey } from '../keys/master-key.ts';
import { LEDGER_SECRET, tenantSecretContext } from '../keys/master-key.ts';
import { createNoteSigner, signCheckpoint } from '../ledger/note.ts';
import type { CheckpointBook, NewCheckpoint } from '../log/checkpoint-files.ts';
import { isExtended } from '../log/checkpoint-service.ts';
import { type LogHead, readHead } from '../log/entries-store.ts';
import { readTenantSecret } from '../tenants/secrets-store.ts';

/**
 * Plans the lines of checkpoints.log that let a node sign a log from an older state: after a restore, or an
 * accepted loss.
 */

interface ContinuationDeps {
  readonly database: Database;
  readonly masterKey: MasterKey;
  readonly book: CheckpointBook;
  readonly now: number;
}

/** @returns null where the log extends its last checkpoint and needs no line */
async function planLog(deps: ContinuationDeps, kid: string, head: LogHead, seed: Uint8Array) {
  const signer = createNoteSigner(head.origin, seed);
  const { vkey } = signer;
  const last = await deps.book.last(vkey).catch(() => null);
  if (last && (await isExtended(deps.database, kid, last, head))) return null;
  const text = signCheckpoint(head.size, head.root, signer);
  const line = { kid, vkey, text, signedAt: deps.now };
  return { line, loss: last && { kid, signed: last.size, entries: head.size } };
}

/** Skips tenants whose rows cannot be read: no server serves them either. */
export async function planContinuation(deps: ContinuationDeps, onlyKid?: string) {
  const { database, masterKey } = deps;
  const lines: NewCheckpoint[] = [];
  /** Logs with fewer entries than their last checkpoint was signed over. */
  const losses = [];
  for (const kid of await listKids(database)) {
    if (onlyKid !== undefined && kid !== onlyKid) continue;
    const head = await readHead(database, kid).catch(() => null);
    const wrapped = await readTenantSecret(database, kid, LEDGER_SECRET);
    if (!head || wrapped === null) continue;
    const seed = masterKey.unwrap(wrapped, tenantSecretContext(kid, LEDGER_SECRET));
    const found = await planLog(deps, kid, head, seed);
    if (found) lines.push(found.line);
    if (found?.loss) losses.push(found.loss);
  }
  return { lines, losses };
}
