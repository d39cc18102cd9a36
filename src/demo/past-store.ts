import { randomBytes } from 'node:crypto';
import type { Database } from '../db/engine.ts';
import { type Bindings, insertMany } from '../db/sql.ts';
import { POLICY_VERSION } from '../ingest/verdict/classify.ts';
import { commitVerdict } from '../ledger/entries.ts';
import { createUlid } from '../lib/crypto.ts';
import { pastHours, verdictsOf } from './past-visits.ts';

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

const tallyRows = (kid: string, kind: string, hour: number, numbers: Readonly<Record<string, number>>) =>
  Object.entries(numbers).flatMap(([name, n]): Bindings[] => (n === 0 ? [] : [[kid, kind, hour, name, n]]));

/** @param visits how many decisions are stored; null: a day of them */
export async function writePast(database: Database, kid: string, now: number, visits: number | null) {
  const { counted, stored } = pastHours(now, visits);
  // A server counts stored decisions itself.
  const tallies = [
    ...counted.flatMap(({ hour, counts }) => tallyRows(kid, 'verdict', hour, counts)),
    ...[...counted, ...stored].flatMap(({ hour, choices }) => tallyRows(kid, 'consent', hour, choices)),
  ];
  await database.transaction(async (tx) => {
    await insertMany(tx, 'INSERT INTO tallies (kid, kind, hour, name, n)', tallies);
    const columns = 'kid, request_id, decided_at, class, durable, verdict, salt, commitment';
    // One hour at a time, so that memory holds only that.
    for (const hour of stored) {
      const rows = verdictsOf(hour, POLICY_VERSION).map((verdict) => decisionRow(kid, verdict));
      await insertMany(tx, `INSERT INTO decisions (${columns})`, rows);
    }
  });
}
