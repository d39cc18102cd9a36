import type { Knex } from 'knex';
import { DAY } from '../lib/clock.ts';
import { DEFENCE_BASIS, type Scope, type ScopeCount, type ScopeCounts } from '../rights/erase.ts';
import { dropExportsOf } from './console-jobs.ts';
import { decisionsOf, defended, devicesOf, inChunks, MAX_IN, type RowTarget } from './erase-find.ts';
import { holdsOn, settleHeld } from './erase-holds.ts';
import { keepCommitments } from './verdict-seal.ts';

/** Deletes the rows of an erasure, all in the caller's transaction; the head of the tenant's log has to be locked. */

export interface ErasedRows {
  readonly counts: ScopeCounts;
  /** Ids that must stand in no file any more. */
  readonly requests: readonly string[];
  readonly visitorIds: readonly string[];
  readonly devices: readonly string[];
  /** A hold keeps rows, and its release erases them. */
  readonly waits: boolean;
}

const NETWORK_DAYS = 9;

/** Erases what is of these devices or requests, scope by scope. */
export async function eraseRows(tx: Knex.Transaction, target: RowTarget, now: number): Promise<ErasedRows> {
  const { kid, durables, keep, linksOf } = target;
  const all = await decisionsOf(tx, target);
  const stays = await defended(tx, target);
  const deviceOf = await devicesOf(tx, target, all);
  const touched = new Set([...durables, ...[...deviceOf.values()].filter((durable) => durable !== null)]);
  // A hold is on the device, whatever the erasure was asked for by.
  const holds = await holdsOn(tx, kid, [...touched]);
  const found = await devicesFound(tx, target, stays, deviceOf);
  const basisOfIndex = (durable: string): string | undefined =>
    holds.basisOfIndex(durable) ?? (found.has(durable) ? DEFENCE_BASIS : undefined);
  const counts: Partial<Record<Scope, ScopeCount>> = {};
  const requests = [...deviceOf.keys()];
  const going = requests.filter((id) => !stays.has(id));
  await dropExportsOf(tx, kid, new Set([...touched, ...requests, linksOf ?? '']));

  /** Deletes, and counts instead where a hold keeps the rows. */
  async function scope(
    name: Scope,
    table: string,
    ids: readonly string[],
    basisOf: (id: string) => string | undefined,
    select: (rows: Knex.QueryBuilder, some: readonly string[]) => Knex.QueryBuilder,
  ): Promise<void> {
    const free = ids.filter((id) => basisOf(id) === undefined);
    const held = ids.filter((id) => basisOf(id) !== undefined);
    const rows = (): Knex.QueryBuilder => tx(table).where({ kid });
    const going = table === 'visitor_index' ? withoutDecision(rows(), tx) : rows();
    const gone = free.length === 0 ? 0 : Number(await select(going, free).delete());
    const kept = (held.length === 0 ? [] : await select(rows(), held).count({ n: '*' })) as { n: number }[];
    const { erased = 0, retained = 0, basis } = counts[name] ?? {};
    const why = kept[0] && Number(kept[0].n) > 0 ? basisOf(held[0] ?? '') : basis;
    const count = { erased: erased + gone, retained: retained + Number(kept[0]?.n ?? 0) };
    counts[name] = why === undefined ? count : { ...count, basis: why };
  }
  const basisOfRequest = (name: Scope) => (id: string) => holds.basis(name, deviceOf.get(id));
  const ofRequests = (name: Scope, table: string, ids: readonly string[]): Promise<void> =>
    scope(name, table, ids, basisOfRequest(name), (rows, some) => rows.whereIn('request_id', [...some]));
  const ofDevices = (
    name: Scope,
    table: string,
    more = (rows: Knex.QueryBuilder): Knex.QueryBuilder => rows,
    basisOf = (id: string): string | undefined => holds.basis(name, id),
  ): Promise<void> =>
    scope(name, table, durables, basisOf, (rows, some) => more(rows.whereIn('durable', [...some])));

  const isHeld = basisOfRequest('decisions');
  // Decisions first: their commitments need the rows to be there.
  const erased = all.filter(({ request_id: id }) => !stays.has(id) && isHeld(id) === undefined);
  await keepCommitments(tx, kid, erased);
  // Its ids stand in the index alone.
  const visitorIds = (await tx('visitor_index')
    .where({ kid })
    .whereIn(
      'durable',
      durables.filter((id) => basisOfIndex(id) === undefined),
    )
    .pluck('visitor_id')) as string[];
  for (let i = 0; i < going.length || i === 0; i += MAX_IN) {
    const chunk = going.slice(i, i + MAX_IN);
    await ofRequests('decisions', 'decisions', chunk);
    await ofRequests('contests', 'contests', chunk);
    // After the contests: whoever resolves one of them meanwhile has put the outcome here before it lets go.
    const untold = chunk.filter((id) => isHeld(id) === undefined);
    await tx('webhook_outbox').where({ kid }).whereIn('request_id', untold).delete();
    await tx('webhook_outbox').where({ kid }).whereIn('principal', chunk.map(target.requestRef)).delete();
    await ofRequests('links', 'links', chunk);
    await ofRequests('signal-summaries', 'signal_summaries', chunk);
    if (!keep.override)
      await scope('override', 'overrides', chunk, basisOfRequest('override'), (rows, some) =>
        // Those of the devices are counted below.
        rows.whereIn('request_id', [...some]).whereNotIn('durable', [...durables]),
      );
  }
  // After the contests: a ruling that held one of them has committed its override by now.
  if (!keep.override) await ofDevices('override', 'overrides');
  // Before the index: a visit that is under way holds its row, and its decision is there once the row is free.
  await ofDevices('sightings', 'sightings');
  await ofDevices('visitor-index', 'visitor_index', undefined, basisOfIndex);
  const today = Math.floor(now / DAY);
  const days = Array.from({ length: NETWORK_DAYS }, (_, i) => today - i);
  // The day comes first in their keys.
  for (const table of ['network_marks', 'network_days'])
    await ofDevices('network-marks', table, (rows) => rows.whereIn('day', days));
  if (linksOf !== null) {
    const linked = (await tx('links').where({ kid, principal: linksOf }).pluck('request_id')) as string[];
    await ofRequests(
      'links',
      'links',
      linked.filter((id) => !deviceOf.has(id)),
    );
  }
  if (keep.override) await keepOverrides(tx, target, requests, counts);
  if (stays.size > 0) {
    for (const name of ['contests', 'decisions'] as const) {
      const { erased: gone = 0, retained = 0 } = counts[name] ?? {};
      counts[name] = { erased: gone, retained: retained + stays.size, basis: DEFENCE_BASIS };
    }
  }
  const held = await settleHeld(
    tx,
    target,
    holds,
    new Map(going.map((id) => [id, deviceOf.get(id) ?? null])),
  );
  return {
    counts,
    requests: going.filter((id) => !held.has(id)),
    visitorIds,
    devices: durables.filter((durable) => !holds.devices.has(durable) && !found.has(durable)),
    waits: Object.values(counts).some(({ retained }) => retained > 0) && holds.devices.size > 0,
  };
}

/** A visit beside the erasure left a decision: the visitorId that it was told stays. */
function withoutDecision(index: Knex.QueryBuilder, tx: Knex.Transaction): Knex.QueryBuilder {
  return index.whereNotExists(
    tx('decisions').whereRaw(
      'decisions.kid = visitor_index.kid AND decisions.durable = visitor_index.durable',
    ),
  );
}

/**
 * Devices of which an open contest or an override stays: their visitor ids do as well. By one of them the person asks, and
 * whoever kept the defence and not the way to it would have kept it from its owner.
 */
async function devicesFound(
  tx: Knex.Transaction,
  { kid, durables, keep }: RowTarget,
  stays: ReadonlySet<string>,
  deviceOf: ReadonlyMap<string, string | null>,
): Promise<ReadonlySet<string>> {
  const contested = [...stays].flatMap((id) => deviceOf.get(id) ?? []);
  const overridden = keep.override
    ? ((await tx('overrides')
        .where({ kid })
        .whereIn('durable', [...durables])
        .pluck('durable')) as string[])
    : [];
  return new Set([...contested, ...overridden]);
}

async function keepOverrides(
  tx: Knex.Transaction,
  target: RowTarget,
  requests: readonly string[],
  counts: Partial<Record<Scope, ScopeCount>>,
): Promise<void> {
  const rows = await tx('overrides')
    .where({ kid: target.kid })
    .whereIn('durable', [...target.durables])
    .count<{ n: number }[]>({ n: '*' });
  const retained = Number(rows[0]?.n ?? 0);
  if (retained > 0) counts.override = { erased: 0, retained, basis: DEFENCE_BASIS };
  // The override stays for its device; that this request led to it is told no more.
  const { kid } = target;
  await inChunks(requests, (chunk) =>
    tx('overrides').where({ kid }).whereIn('request_id', chunk).update({ request_id: null }),
  );
}
