import { randomBytes } from 'node:crypto';
import type { Database } from '../db/engine.ts';
import { type Bindings, insertMany } from '../db/sql.ts';
import { POLICY_VERSION } from '../ingest/verdict/classify.ts';
import { commitVerdict } from '../ledger/entries.ts';
import { createUlid } from '../lib/crypto.ts';
import { isStored, type PastHour, pastHours, verdictsOf } from './past-visits.ts';

/** Writes the counts and the decisions of the time before the demo, without a server. */

const SALT_BYTES = 16;

function decisionRow(kid: string, verdict: ReturnType<typeof verdictsOf>[number]): Bindings {
  const { decidedAt, class: visitorClass, durable } = verdict;
  const requestId = `req_${createUlid(() => decidedAt, randomBytes)}`;
  const text = JSON.stringify({ requestId, ...verdict });
  const salt = randomBytes(SALT_BYTES);
  const commitment = commitVerdict(salt, kid, requestId, text);
  return [kid, requestId, decidedAt, visitorClass, durable, text, salt.toString('base64url'), commitment];
}

/** Visits of an hour whose decisions are stored are counted from those, as a server does. */
function tallyRows(kid: string, { hour, counts, choices }: PastHour, now: number): Bindings[] {
  const rows = (kind: string, numbers: Readonly<Record<string, number>>) =>
    Object.entries(numbers).map(([name, n]): Bindings => [kid, kind, hour, name, n]);
  return [...(isStored(hour, now) ? [] : rows('verdict', counts)), ...rows('consent', choices)];
}

export async function writePast(database: Database, kid: string, now: number): Promise<void> {
  const hours = pastHours(now);
  const tallies = hours.flatMap((hour) => tallyRows(kid, hour, now));
  const decisions = hours
    .filter(({ hour }) => isStored(hour, now))
    .flatMap((hour) => verdictsOf(hour, POLICY_VERSION).map((verdict) => decisionRow(kid, verdict)));
  await database.transaction(async (tx) => {
    await insertMany(
      tx,
      'INSERT INTO tallies (kid, kind, hour, name, n)',
      tallies.filter((row) => row[4] !== 0),
    );
    const columns = 'kid, request_id, decided_at, class, durable, verdict, salt, commitment';
    await insertMany(tx, `INSERT INTO decisions (${columns})`, decisions);
  });
}
