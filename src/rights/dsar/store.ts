import type { Knex } from 'knex';
import type { Reader } from '../../db/engine.ts';
import { cellOf, countOf, countUpTo, isTrue, whereAmong, whereOneOf } from '../../db/sql.ts';
import type { Verdict } from '../../ingest/verdict/verdict.ts';
import { chunksOf, pagesBy } from '../../lib/collections.ts';
import type { Contest, ContestTexts } from '../contests/contest.ts';
import { contestsIn } from '../contests/store.ts';

/** Reads the data stored about a subject, table by table: the tables that an erasure empties. */

/** A device, and requests that a principal linked. */
export interface HeldReach {
  readonly durable: string | null;
  readonly linked: readonly string[];
}

export type HeldDevice = NonNullable<Awaited<ReturnType<typeof readDevice>>>;

async function readPasskey(read: Knex, device: { readonly kid: string; readonly durable: string }) {
  const row = await read('credentials')
    .where(device)
    .first<{ device_bound: unknown; created_at: number; last_at: number } | undefined>();
  if (!row) return null;
  return { deviceBound: isTrue(row.device_bound), createdAt: row.created_at, lastUsedAt: row.last_at };
}

export async function readDevice({ read }: Reader, kid: string, durable: string) {
  const device = { kid, durable };
  const sighting = await read('sightings')
    .where(device)
    .first<{ firstSeenAt: number; lastSeenAt: number; seen: number } | undefined>({
      firstSeenAt: 'first_at',
      lastSeenAt: 'last_at',
      seen: 'seen',
    });
  const visitorIds = (await read('visitor_index')
    .where(device)
    .orderBy('epoch')
    .select({ visitorId: 'visitor_id', epoch: 'epoch' })) as { visitorId: string; epoch: number }[];
  // Client networks per day, as counts, and the number of today's salted marks.
  const networks = (await read('network_days').where(device).orderBy('day').select('day', 'networks')) as {
    day: number;
    networks: number;
  }[];
  const passkey = await readPasskey(read, device);
  if (!sighting && visitorIds.length === 0 && networks.length === 0 && !passkey) return null;
  return { firstSeenAt: 0, lastSeenAt: 0, seen: 0, ...sighting, visitorIds, networks, passkey };
}

/** The override of the device, or one that a contest of a linked request caused. */
export async function readOverride({ read }: Reader, kid: string, { durable, linked }: HeldReach) {
  const readFirst = (
    rows: Knex.QueryBuilder,
  ): Promise<{ readonly createdAt: number; readonly requestId: string | null } | undefined> =>
    rows.where({ kid }).first({ createdAt: 'created_at', requestId: 'request_id' });
  const deviceOverride = durable === null ? undefined : await readFirst(read('overrides').where({ durable }));
  if (deviceOverride) return deviceOverride;
  for (const ids of chunksOf(linked)) {
    const requestOverride = await readFirst(whereAmong(read('overrides'), read, 'request_id', ids));
    if (requestOverride) return requestOverride;
  }
  return null;
}

export async function readContests(
  database: Reader,
  contestTexts: ContestTexts,
  kid: string,
  reach: HeldReach,
): Promise<readonly Contest[]> {
  const { durable, linked } = reach;
  const contestRows = (): Knex.QueryBuilder => database.read('contests').where({ kid });
  const contestsFound =
    durable === null ? [] : [...(await contestsIn(contestRows().where({ durable }), contestTexts))];
  for (const ids of chunksOf(linked))
    contestsFound.push(
      ...(await contestsIn(whereAmong(contestRows(), database.read, 'request_id', ids), contestTexts)),
    );
  const contests = new Map(contestsFound.map((contest) => [contest.contestId, contest]));
  const compareFiled = (a: Contest, b: Contest): number =>
    a.filedAt - b.filedAt || (a.contestId < b.contestId ? -1 : 1);
  return [...contests.values()].sort(compareFiled);
}

export async function readLinks(database: Reader, kid: string, principal: string) {
  const query = database.read('links').where({ kid, principal });
  const links = query.orderBy('linked_at');
  return (await links.select({ requestId: 'request_id', linkedAt: 'linked_at' })) as {
    requestId: string;
    linkedAt: number;
  }[];
}

export interface HeldDecision {
  readonly requestId: string;
  readonly verdict: Verdict;
  /** The summary of its signals, which is stored until the transparency token expires. */
  readonly summary: unknown;
  /** A later decision of the same browser session. */
  readonly supersededBy?: string | null;
  /** The outcome that the tenant's backend reported. */
  readonly reported?: { readonly outcome: string; readonly at: number } | null;
}

type HeldRow = Readonly<
  Record<'requestId' | 'verdict', string> & Record<'summary' | 'supersededBy' | 'outcome', string | null>
> & { readonly at: number | null };

const PAGE = 500;

async function readDecisionPage(
  database: Reader,
  kid: string,
  part: { readonly durable: string } | { readonly requests: readonly string[] },
  before: string | null,
): Promise<HeldDecision[]> {
  const query = database
    .read('decisions as d')
    .joinRaw('LEFT JOIN signal_summaries s ON s.kid = d.kid AND s.request_id = d.request_id')
    .joinRaw('LEFT JOIN decision_updates u ON u.kid = d.kid AND u.earlier = d.request_id')
    .joinRaw('LEFT JOIN decision_outcomes o ON o.kid = d.kid AND o.request_id = d.request_id')
    .where('d.kid', kid);
  if ('durable' in part) query.where('d.durable', part.durable);
  else query.whereIn('d.request_id', part.requests);
  if (before !== null) query.where('d.request_id', '<', before);
  const rows = (await query.orderBy('d.request_id', 'desc').limit(PAGE).select({
    requestId: 'd.request_id',
    verdict: 'd.verdict',
    summary: 's.summary',
    supersededBy: 'u.request_id',
    outcome: 'o.outcome',
    at: 'o.at',
  })) as HeldRow[];
  return rows.map(({ requestId, verdict, summary, supersededBy, outcome, at }) => ({
    requestId,
    supersededBy,
    reported: outcome === null ? null : { outcome, at: Number(at) },
    verdict: JSON.parse(verdict) as Verdict,
    summary: summary === null ? null : (JSON.parse(summary) as unknown),
  }));
}

/** Yields decisions, the newest first, in pages, so that a long trail is never in memory as a whole. */
export async function* readDecisions(database: Reader, kid: string, reach: HeldReach) {
  const { durable, linked } = reach;
  if (durable !== null) {
    const readNextPage = (after: HeldDecision | undefined) =>
      readDecisionPage(database, kid, { durable }, after?.requestId ?? null);
    yield* pagesBy(PAGE, readNextPage);
  }
  const ids = [...linked].sort().reverse();
  for (const requests of chunksOf(ids, PAGE)) {
    const decisions = await readDecisionPage(database, kid, { requests }, null);
    const otherDecisions = decisions.filter(({ verdict }) => durable === null || verdict.durable !== durable);
    if (otherDecisions.length > 0) yield otherDecisions;
  }
}

export async function countDecisions(database: Reader, kid: string, reach: HeldReach): Promise<number> {
  const { durable, linked } = reach;
  const decisionRows = (): Knex.QueryBuilder => database.read('decisions').where({ kid });
  let total = durable === null ? 0 : await countOf(decisionRows().where({ durable }));
  for (const ids of chunksOf(linked)) {
    const query = whereOneOf(decisionRows(), database.read, 'request_id', ids);
    // Decisions of the device are counted already.
    if (durable !== null) query.whereRaw('(durable IS NULL OR durable <> ?)', [durable]);
    total += await countOf(query);
  }
  return total;
}

/**
 * Reads the other visits of a device, the newest first, which a reviewer sees next to a contested decision.
 */
export async function readDeviceTrail(database: Reader, kid: string, durable: string, limit: number) {
  const rows = (await database
    .read('decisions')
    .where({ kid, durable })
    .orderBy('request_id', 'desc')
    .limit(limit)
    .pluck('verdict')) as string[];
  return rows.map((text) => {
    const verdict = JSON.parse(text) as Verdict;
    const { requestId, decidedAt, suspectScore, overridden, needsAttestation } = verdict;
    return { requestId, decidedAt, class: verdict.class, suspectScore, overridden, needsAttestation };
  });
}

/** At most `cap + 1`. */
export function countTrail({ read }: Reader, kid: string, durable: string, cap: number): Promise<number> {
  return countUpTo(read, read('decisions').where({ kid, durable }), cap);
}

/** Contests of the same device, the newest first, without their texts. */
export function readDeviceContests({ read }: Reader, kid: string, durable: string, limit: number) {
  const contests = read('contests').where({ kid, durable });
  return contestsIn(contests.orderBy('contest_id', 'desc').limit(limit), null);
}

/** @returns the time of the oldest stored decision */
export async function readOldestDecision(database: Reader, kid: string): Promise<number | null> {
  const decisions = database.read('decisions').where({ kid }).orderBy('decided_at');
  return (await cellOf<number>(decisions, 'decided_at')) ?? null;
}
