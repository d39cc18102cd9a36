import type { Knex } from 'knex';
import type { Keep, Requester, Scope } from '../rights/erase.ts';

/** What legal holds keep of an erasure's rows: device by device, and not of the others that it was asked for with. */

const MAX_IN = 500;

/** Tables in which a request is named. */
const OF_REQUESTS = ['decisions', 'contests', 'links', 'signal_summaries', 'overrides'] as const;

export interface Holds {
  /** The basis on which these rows of the device stay; undefined: nothing keeps them. */
  readonly basis: (scope: Scope, durable: string | null | undefined) => string | undefined;
  /** The same for the visitorIds of the device. */
  readonly basisOfIndex: (durable: string) => string | undefined;
  readonly devices: ReadonlySet<string>;
}

/** What a visitorId leads to: whoever kept that and not the way to it would have kept it from its owner. */
const LED_TO: readonly Scope[] = ['visitor-index', 'sightings', 'decisions', 'contests', 'override'];

interface HoldRow {
  readonly durable: string;
  readonly scope: Scope;
  readonly basis: string;
}

export async function holdsOn(
  tx: Knex.Transaction,
  kid: string,
  durables: readonly string[],
): Promise<Holds> {
  const found = new Map<string, string>();
  const devices = new Set<string>();
  for (let i = 0; i < durables.length; i += MAX_IN) {
    const some = durables.slice(i, i + MAX_IN);
    for (const row of (await tx('legal_holds').where({ kid }).whereIn('durable', some)) as HoldRow[]) {
      found.set(`${row.scope} ${row.durable}`, row.basis);
      devices.add(row.durable);
    }
  }
  const basis: Holds['basis'] = (scope, durable) => found.get(`${scope} ${durable ?? ''}`);
  const basisOfIndex = (durable: string): string | undefined =>
    LED_TO.map((scope) => basis(scope, durable)).find((found) => found !== undefined);
  return { devices, basis, basisOfIndex };
}

interface Asked {
  readonly kid: string;
  readonly durables: readonly string[];
  readonly keep: Keep;
  readonly requestedBy: Requester;
}

/** Those of the requests that a row names still. */
async function stillNamed(
  tx: Knex.Transaction,
  kid: string,
  requests: readonly string[],
): Promise<ReadonlySet<string>> {
  const named = new Set<string>();
  for (let i = 0; i < requests.length; i += MAX_IN) {
    const some = requests.slice(i, i + MAX_IN);
    for (const table of OF_REQUESTS) {
      const ids = (await tx(table)
        .where({ kid })
        .whereIn('request_id', some)
        .pluck('request_id')) as string[];
      for (const id of ids) named.add(id);
    }
  }
  return named;
}

/**
 * Notes what a release has to erase, and forgets what had waited and is gone now. What `/me forget` leaves is the person's own:
 * only an erasure that keeps nothing waits for a hold.
 * @param requests all that were meant, each with its device; of their rows those are gone that may go
 * @returns the requests of which a hold keeps a row
 */
export async function settleHeld(
  tx: Knex.Transaction,
  asked: Asked,
  holds: Holds,
  requests: ReadonlyMap<string, string | null>,
): Promise<ReadonlySet<string>> {
  const { kid, durables, keep, requestedBy } = asked;
  const ofHeld = [...requests].filter(([, durable]) => durable !== null && holds.devices.has(durable));
  const named = await stillNamed(
    tx,
    kid,
    ofHeld.map(([id]) => id),
  );
  const gone = [...requests.keys()].filter((id) => !named.has(id));
  for (let i = 0; i < gone.length; i += MAX_IN)
    await tx('held_erasures')
      .where({ kid })
      .whereIn('request_id', gone.slice(i, i + MAX_IN))
      .delete();
  if (keep.openContests || keep.override) return named;
  await tx('held_erasures')
    .where({ kid })
    .whereIn('durable', [...durables])
    .delete();
  const held = durables.filter((durable) => holds.devices.has(durable));
  await tx('legal_holds').where({ kid }).whereIn('durable', held).update({ requested_by: requestedBy });
  for (const [requestId, durable] of ofHeld) {
    if (durable === null || !named.has(requestId) || durables.includes(durable)) continue;
    const row = { kid, durable, request_id: requestId, requested_by: requestedBy, due_at: null };
    await tx('held_erasures').insert(row).onConflict(['kid', 'durable', 'request_id']).merge();
  }
  return named;
}
