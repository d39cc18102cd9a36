import type { Database } from '../db/db.ts';
import { LEDGER_SECRET, tenantSecretContext } from '../keys/contexts.ts';
import type { MasterKey } from '../keys/master-key.ts';
import { signCheckpoint } from '../ledger/checkpoint.ts';
import { makeNoteSigner } from '../ledger/note.ts';
import type { CheckpointBook, NewCheckpoint } from '../log/checkpoint-files.ts';
import { type CheckpointDeps, currentCheckpoint, isExtended } from '../log/checkpoint-service.ts';
import { markCheckpointed } from '../log/log-secret-store.ts';
import { type LogSecret, readLogSecret } from '../log/new-log.ts';
import { type LogHead, readHead } from '../log/read-store.ts';
import { sayRetainedBefore } from '../rights/retention/store.ts';
import { makeTenantStore, readTenantSecret } from '../tenants/tenant-store.ts';

/** What checkpoints.log has to say of logs that go on from an older state: of a restore, of an operator who accepts a loss, or of an
 * older release. */

interface GoOnDeps {
  readonly database: Database;
  readonly masterKey: MasterKey;
  readonly book: CheckpointBook;
  readonly now: number;
}

/** Null: the log extends what was signed, or an old log starts without one. */
async function goOn(deps: GoOnDeps, kid: string, head: LogHead, { seed, checkpointed }: LogSecret) {
  const signer = makeNoteSigner(head.origin, seed);
  const { vkey } = signer;
  const last = await deps.book.last(vkey).catch(() => null);
  if (last === null && !checkpointed) return null;
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
  const lost = [];
  for (const kid of await makeTenantStore(database).kids()) {
    if (only !== undefined && kid !== only) continue;
    const head = await readHead(database, kid).catch(() => null);
    const wrapped = await readTenantSecret(database, kid, LEDGER_SECRET);
    if (!head || wrapped === null) continue;
    const secret = readLogSecret(masterKey.unwrap(wrapped, tenantSecretContext(kid, LEDGER_SECRET)));
    const found = await goOn(deps, kid, head, secret);
    if (found) lines.push(found.line);
    if (found?.lost) lost.push(found.lost);
  }
  return { lines, lost };
}

/**
 * A log of a release that kept no checkpoints.log begins one before the server listens: its head is signed and kept, and it says
 * what retention had taken until then. From there on a missing line is a missing line.
 */
export async function beginCheckpoints(
  deps: CheckpointDeps,
  masterKey: MasterKey,
  onFault: (kid: string, error: unknown) => void,
): Promise<void> {
  const { database, keysOf, clock } = deps;
  const tenants = makeTenantStore(database);
  for (const { kid, settings } of await tenants.list()) {
    if (keysOf(kid)?.checkpointed !== false) continue;
    try {
      const macs = keysOf(kid)?.stateMac;
      const rules = { kid, days: settings['retention.days'], now: clock(), macs };
      // Signed first: what does not extend an earlier checkpoint is not written to.
      await currentCheckpoint(deps, kid, 0, 0);
      await sayRetainedBefore(database, rules);
      await markCheckpointed(database, masterKey, kid);
    } catch (error) {
      onFault(kid, error);
    }
  }
}
