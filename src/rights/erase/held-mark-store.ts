import type { Knex } from 'knex';
import { inChunks } from '../../lib/chunks.ts';
import { DEVICES_OF_REQUESTS, HELD_BY_REQUEST } from '../subject-folds.ts';
import type { Meant, RowTarget } from './find-store.ts';
import type { Holds } from './hold-store.ts';

/** Records what the release of a hold has to erase. */

/** Requests that a kept row names, and those of them that their device leads to. */
async function stillNamed(tx: Knex.Transaction, kid: string, requests: readonly string[]) {
  const held = new Set<string>();
  const byDevice = new Set<string>();
  await inChunks(requests, async (some) => {
    for (const table of HELD_BY_REQUEST) {
      const rows = tx(table).where({ kid }).whereIn('request_id', some);
      for (const id of (await rows.pluck('request_id')) as string[]) {
        held.add(id);
        if (DEVICES_OF_REQUESTS.includes(table)) byDevice.add(id);
      }
    }
  });
  return { held, byDevice };
}

/** What `/me forget` leaves is the person's own: only an erasure that keeps nothing waits for a hold. */
const waitsForHolds = ({ keep }: RowTarget): boolean => !keep.openContests && !keep.override;

/** Records that a release has to erase these devices, which lead to their requests. */
export async function markHeldDevices(tx: Knex.Transaction, target: RowTarget, holds: Holds): Promise<void> {
  const { kid, durables, requestedBy } = target;
  if (!waitsForHolds(target)) return;
  await tx('held_erasures').where({ kid }).whereIn('durable', durables).delete();
  const held = durables.filter((durable) => holds.devices.has(durable));
  await tx('legal_holds').where({ kid }).whereIn('durable', held).update({ requested_by: requestedBy });
}

/**
 * Notes which requests a release has to erase, and forgets what had waited and is gone now.
 * @param ids all that were meant; of their rows those are gone that may go
 * @returns those of which a hold keeps a row
 */
export async function markHeldRequests(tx: Knex.Transaction, meant: Meant, ids: readonly string[]) {
  const { target, holds, requests } = meant;
  const { kid, durables, requestedBy } = target;
  const ofHeld = ids.filter((id) => holds.devices.has(requests.get(id) ?? ''));
  const { held, byDevice } = await stillNamed(tx, kid, ofHeld);
  await inChunks(
    ids.filter((id) => !held.has(id)),
    (gone) => tx('held_erasures').where({ kid }).whereIn('request_id', gone).delete(),
  );
  if (!waitsForHolds(target)) return held;
  for (const requestId of held) {
    const durable = requests.get(requestId) ?? '';
    const deviceWaits = durables.includes(durable) || holds.waiting.has(durable);
    if (deviceWaits && byDevice.has(requestId)) continue;
    const row = { kid, durable, request_id: requestId, requested_by: requestedBy, due_at: null };
    await tx('held_erasures').insert(row).onConflict(['kid', 'durable', 'request_id']).merge();
  }
  return held;
}
