import type { Database } from '../db/engine.ts';
import { listKids } from '../db/meta-store.ts';
import type { MasterKey } from '../keys/master-key.ts';
import { LEDGER_SECRET, tenantSecretContext } from '../keys/master-key.ts';
import { createNoteSigner, signCheckpoint } from '../ledger/note.ts';
import type { CheckpointBook, NewCheckpoint } from '../log/checkpoint-files.ts';
import { isExtended } from '../log/checkpoint-service.ts';
import { type LogHead, readHead } from '../log/entries.ts';
import { readTenantSecret } from '../tenants/secrets.ts';

/** What checkpoints.log has to say of logs that go on from an older state: after a restore, or when an operator accepts a loss. */

interface GoOnDeps {
  readonly database: Database;
  readonly masterKey: MasterKey;
  readonly book: CheckpointBook;
  readonly now: number;
}

/** Null: the log extends what was signed. */
async function goOn(deps: GoOnDeps, kid: string, head: LogHead, seed: Uint8Array) {
  const signer = createNoteSigner(head.origin, seed);
  const { vkey } = signer;
  const last = await deps.book.last(vkey).catch(() => null);
  if (last && (await isExtended(deps.database, kid, last, head))) return null;
  const text = signCheckpoint(head.size, head.root, signer);
  const line = { kid, vkey, text, signedAt: deps.now };
  return { line, lost: last && { kid, signed: last.size, entries: head.size } };
}

/** Of the tenants whose rows can be read: the others are not served either. */
export async function planGoingOn(deps: GoOnDeps, only?: string) {
  const { database, masterKey } = deps;
  const lines: NewCheckpoint[] = [];
  /** Of logs that lost some: how many entries a checkpoint was signed over, and how many there are. */
  const losses = [];
  for (const kid of await listKids(database)) {
    if (only !== undefined && kid !== only) continue;
    const head = await readHead(database, kid).catch(() => null);
    const wrapped = await readTenantSecret(database, kid, LEDGER_SECRET);
    if (!head || wrapped === null) continue;
    const seed = masterKey.unwrap(wrapped, tenantSecretContext(kid, LEDGER_SECRET));
    const found = await goOn(deps, kid, head, seed);
    if (found) lines.push(found.line);
    if (found?.lost) losses.push(found.lost);
  }
  return { lines, losses };
}
