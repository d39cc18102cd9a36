import type { Knex } from 'knex';
import type { DeviceLookup, KnownDevice, RecordEntry, Recorder } from '../ingest/ports.ts';
import { commitVerdict } from '../ledger/commitment.ts';
import type { Database } from './db.ts';
import { type Group, makeGroup } from './group-commit.ts';
import { type Bindings, insertMany, placeholders, rowsOf } from './sql.ts';

/** Both databases bound what one statement may carry; 9 columns × 400 rows stays far below 32,766 parameters. */
const MAX_BATCH = 400;
const MAX_WAITING = 20_000;

/** One order of rows for all nodes keeps concurrent batches from deadlocking on PostgreSQL. */
function byText(column: number): (a: Bindings, b: Bindings) => number {
  return (a, b) => (String(a[column]) < String(b[column]) ? -1 : 1);
}

/** Which entries won their nonce; of two in one batch the first does. */
async function claimNonces(tx: Knex.Transaction, entries: readonly RecordEntry[]): Promise<boolean[]> {
  const rows = entries.map((entry): Bindings => [entry.kid, entry.nonce, entry.nonceExpiresAt]);
  rows.sort(byText(1));
  const claimed = await insertMany<{ kid: string; nonce: string }>(
    tx,
    'INSERT INTO nonces (kid, nonce, expires_at)',
    rows,
    'ON CONFLICT DO NOTHING RETURNING kid, nonce',
  );
  const free = new Set(claimed.map((row) => `${row.kid}|${row.nonce}`));
  return entries.map((entry) => free.delete(`${entry.kid}|${entry.nonce}`));
}

interface SightingGroup {
  readonly kid: string;
  readonly durable: string;
  readonly epoch: number;
  first: number;
  last: number;
  seen: number;
}

/** One row a device: PostgreSQL refuses to update a row twice in one statement. */
function groupSightings(entries: readonly RecordEntry[]): SightingGroup[] {
  const groups = new Map<string, SightingGroup>();
  for (const { kid, identified, verdict } of entries) {
    if (!identified) continue;
    const { durable, epoch } = identified;
    const at = verdict.decidedAt;
    const group = groups.get(`${kid}|${durable}`);
    if (group) {
      group.first = Math.min(group.first, at);
      group.last = Math.max(group.last, at);
      group.seen += 1;
    } else {
      groups.set(`${kid}|${durable}`, { kid, durable, epoch, first: at, last: at, seen: 1 });
    }
  }
  return [...groups.values()];
}

async function writeSightings(tx: Knex.Transaction, entries: readonly RecordEntry[]): Promise<void> {
  const rows = groupSightings(entries).map(
    (group): Bindings => [group.kid, group.durable, group.first, group.last, group.seen, group.epoch],
  );
  await insertMany(
    tx,
    'INSERT INTO sightings (kid, durable, first_at, last_at, seen, epoch)',
    rows,
    `ON CONFLICT (kid, durable) DO UPDATE SET seen = sightings.seen + excluded.seen,
      last_at = CASE WHEN excluded.last_at > sightings.last_at THEN excluded.last_at ELSE sightings.last_at END,
      epoch = CASE WHEN excluded.epoch > sightings.epoch THEN excluded.epoch ELSE sightings.epoch END`,
  );
}

async function writeIndex(tx: Knex.Transaction, entries: readonly RecordEntry[]): Promise<void> {
  const rows: Bindings[] = [];
  for (const { kid, identified } of entries) {
    if (!identified || identified.indexed) continue;
    rows.push([kid, identified.visitorId, identified.durable, identified.epoch]);
  }
  rows.sort(byText(1));
  const head = 'INSERT INTO visitor_index (kid, visitor_id, durable, epoch)';
  await insertMany(tx, head, rows, 'ON CONFLICT DO NOTHING');
}

async function writeDecisions(tx: Knex.Transaction, entries: readonly RecordEntry[]): Promise<void> {
  const rows = entries.map(({ kid, verdict, salt }): Bindings => {
    const text = JSON.stringify(verdict);
    const commitment = commitVerdict(Buffer.from(salt, 'base64url'), kid, verdict.requestId, text);
    return [
      kid,
      verdict.requestId,
      verdict.decidedAt,
      verdict.class,
      verdict.durable,
      text,
      salt,
      commitment,
    ];
  });
  const head =
    'INSERT INTO decisions (kid, request_id, decided_at, class, durable, verdict, salt, commitment)';
  await insertMany(tx, head, rows);
}

async function recordBatch(
  database: Database,
  entries: readonly RecordEntry[],
): Promise<('recorded' | 'replay')[]> {
  return database.transaction(async (tx) => {
    const won = await claimNonces(tx, entries);
    const accepted = entries.filter((_, i) => won[i]);
    if (accepted.length > 0) {
      await writeSightings(tx, accepted);
      await writeIndex(tx, accepted);
      await writeDecisions(tx, accepted);
    }
    return won.map((claimed) => (claimed ? 'recorded' : 'replay'));
  });
}

export interface GroupedRecorder extends Recorder {
  idle(): Promise<void>;
}

/** Group commit: one transaction of a few multi-row statements for all bundles that wait. */
export function makeRecorder(database: Database): GroupedRecorder {
  const group: Group<RecordEntry, 'recorded' | 'replay'> = makeGroup({
    run: (entries) => recordBatch(database, entries),
    maxBatch: MAX_BATCH,
    maxWaiting: MAX_WAITING,
  });
  return { record: (entry) => group.submit(entry), idle: () => group.idle() };
}

interface DeviceKey {
  readonly kid: string;
  readonly durable: string;
}

const UNKNOWN: KnownDevice = { seen: false, epoch: null, neverAutomation: false };

async function lookupBatch(database: Database, keys: readonly DeviceKey[]): Promise<KnownDevice[]> {
  const list = placeholders(2, keys.length);
  const bindings = keys.flatMap(({ kid, durable }) => [kid, durable]);
  const query = async <Row>(sql: string): Promise<readonly Row[]> =>
    rowsOf<Row>(await database.read.raw(`${sql} WHERE (kid, durable) IN (VALUES ${list})`, bindings));
  const [seen, overrides] = await Promise.all([
    query<DeviceKey & { epoch: number }>('SELECT kid, durable, epoch FROM sightings'),
    query<DeviceKey>('SELECT kid, durable FROM overrides'),
  ]);
  const epochs = new Map(seen.map((row) => [`${row.kid}|${row.durable}`, row.epoch]));
  const never = new Set(overrides.map((row) => `${row.kid}|${row.durable}`));
  return keys.map(({ kid, durable }) => {
    const id = `${kid}|${durable}`;
    const epoch = epochs.get(id);
    if (epoch === undefined && !never.has(id)) return UNKNOWN;
    return { seen: epoch !== undefined, epoch: epoch ?? null, neverAutomation: never.has(id) };
  });
}

export function makeDeviceLookup(database: Database): DeviceLookup {
  const group = makeGroup<DeviceKey, KnownDevice>({
    run: (keys) => lookupBatch(database, keys),
    maxBatch: MAX_BATCH,
    maxWaiting: MAX_WAITING,
    concurrency: 2,
  });
  return { lookup: (kid, durable) => group.submit({ kid, durable }) };
}
