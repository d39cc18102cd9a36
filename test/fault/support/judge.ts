import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { House } from './house.ts';
import { type Book, type Chosen, PURPOSE, send } from './load.ts';

/** Holds a server to what was answered before the fault. Each rule says what would be lost. */

interface Check {
  readonly reason: string;
  readonly allowed: boolean;
  readonly proof: { readonly seq: number; readonly hash: string };
}

/** So many requests at once; one after the other would take longer than the fault. */
const WIDTH = 16;

async function each<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = [...items];
  await Promise.all(
    Array.from({ length: WIDTH }, async () => {
      for (let item = rest.pop(); item !== undefined; item = rest.pop()) await work(item);
    }),
  );
}

/**
 * An answered visit is stored; an unanswered one is stored whole or not at all; no nonce is accepted twice.
 */
async function judgeVisits(house: House, book: Book): Promise<void> {
  const erasedIds = new Set(book.erasures.map(({ requestId }) => requestId));
  await each(book.visits, async ({ bundle, answer }) => {
    const again = (await send(house, bundle)).status;
    if (answer) {
      expect({ requestId: answer.requestId, again }).toEqual({ requestId: answer.requestId, again: 409 });
      if (erasedIds.has(answer.requestId)) return;
      const reply = await house.get(`/v1/decisions/${answer.requestId}`);
      expect({ requestId: answer.requestId, status: reply.status }).toMatchObject({ status: 200 });
      expect(reply.json()).toMatchObject({ visitorId: answer.visitorId, class: answer.class });
      return;
    }
    // Done or not: but not a third thing, and from now on taken.
    expect([200, 409]).toContain(again);
    expect((await send(house, bundle)).status).toBe(409);
  });
}

/** The reasons that the last choices allow: an unanswered one may have been written or not. */
function reasonsOf(chosen: readonly Chosen[], shredded: boolean | null | undefined): readonly string[] {
  if (shredded === true) return ['erased'];
  const last = chosen.at(-1);
  const before = chosen.at(-2);
  const choices = last?.place ? [last.choice] : [last?.choice ?? '', before?.choice ?? 'never-asked'];
  return shredded === null ? [...choices, 'erased'] : choices;
}

async function judgeChoices(house: House, book: Book): Promise<void> {
  await each([...book.choices], async ([principalId, chosen]) => {
    const shredded = book.shredded.get(principalId);
    const reply = await house.post('/v1/consent/can-process', { principalId, purpose: PURPOSE });
    expect(reply.status).toBe(200);
    const { reason, allowed, proof } = reply.json() as Check;
    expect({ principalId, allowed: [reason] }).toEqual({
      principalId,
      allowed: [reasonsOf(chosen, shredded).find((name) => name === reason) ?? reasonsOf(chosen, shredded)],
    });
    expect(allowed).toBe(reason === 'granted');
    const last = chosen.at(-1)?.place;
    if (shredded === undefined && last) expect(proof).toEqual({ seq: last.seq, hash: last.hash });
  });
}

/** Every place that was told holds the entry that was told. */
async function judgeLog(house: House, book: Book): Promise<void> {
  const reply = await house.get('/v1/ledger/export');
  const lines = reply.text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { seq: number; hash: string });
  expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, i) => i));
  for (const { place } of [...book.choices.values()].flat()) {
    if (place)
      expect({ seq: place.seq, hash: lines[place.seq]?.hash }).toEqual({ seq: place.seq, hash: place.hash });
  }
}

async function judgeContests(house: House, book: Book): Promise<void> {
  await each(book.contests, async ({ requestId, visitorId, contestId, outcome, resolving }) => {
    const decision = (await house.get(`/v1/decisions/${requestId}`)).json() as { restricted: boolean };
    if (contestId !== null && !resolving) expect(decision.restricted).toBe(outcome === null);
    // A second contest of the same decision returns the first (contract 6.2).
    const reply = await house.post('/privacy/contest', { requestId }, house.subject(visitorId));
    expect({ status: reply.status, text: reply.text }).toMatchObject({ status: 202 });
    const record = reply.json() as { contestId: string; outcome: string | null; status: string };
    if (contestId === null) return;
    expect(record.contestId).toBe(contestId);
    if (!resolving) expect(record).toMatchObject({ outcome, status: outcome === null ? 'open' : 'resolved' });
  });
}

async function judgeErasures(house: House, book: Book): Promise<void> {
  await each(book.erasures, async ({ requestId, receiptId }) => {
    const { status } = await house.get(`/v1/decisions/${requestId}`);
    if (receiptId !== null) expect({ requestId, status }).toEqual({ requestId, status: 404 });
    else expect([200, 404]).toContain(status);
  });
}

const HALVES = {
  'decisions of a device that was never sighted': `SELECT count(*) AS n FROM decisions d WHERE durable IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM sightings s WHERE s.kid = d.kid AND s.durable = d.durable)`,
  'visitorIds of no device': `SELECT count(*) AS n FROM visitor_index v
    WHERE NOT EXISTS (SELECT 1 FROM sightings s WHERE s.kid = v.kid AND s.durable = v.durable)`,
  'sightings without a visitorId': `SELECT count(*) AS n FROM sightings s
    WHERE NOT EXISTS (SELECT 1 FROM visitor_index v WHERE s.kid = v.kid AND s.durable = v.durable)`,
  'verdicts without a claimed nonce': `SELECT CASE WHEN (SELECT count(*) FROM nonces) <
    (SELECT count(*) FROM decisions) THEN 1 ELSE 0 END AS n`,
  'openings of no entry': `SELECT count(*) AS n FROM consent_openings o
    WHERE NOT EXISTS (SELECT 1 FROM ledger_entries e WHERE e.kid = o.kid AND e.seq = o.seq)`,
  'states of no entry': `SELECT count(*) AS n FROM consent_state o
    WHERE NOT EXISTS (SELECT 1 FROM ledger_entries e WHERE e.kid = o.kid AND e.seq = o.seq AND e.hash = o.hash)`,
  'contests of no verdict': `SELECT count(*) AS n FROM contests c
    WHERE NOT EXISTS (SELECT 1 FROM decisions d WHERE d.kid = c.kid AND d.request_id = c.request_id)`,
};

/** Nothing was done by half, whatever was answered. */
export async function judgeTables(house: House): Promise<void> {
  for (const [fault, sql] of Object.entries(HALVES)) {
    const [row] = await house.sql(sql);
    expect({ what: fault, n: Number(row?.['n']) }).toEqual({ what: fault, n: 0 });
  }
}

/** Everything that this book says. */
export async function judge(house: House, book: Book): Promise<void> {
  await judgeVisits(house, book);
  await judgeChoices(house, book);
  await judgeLog(house, book);
  await judgeContests(house, book);
  await judgeErasures(house, book);
}

/** No byte of an erased request in any file, once the erasures are finished. */
export async function judgeFiles(house: House, book: Book): Promise<void> {
  const resumed = await house.cli(['erase', 'resume', '--json']);
  expect({ code: resumed.code, err: resumed.stderr }).toMatchObject({ code: 0 });
  const files = readdirSync(house.dataDir).map((name) => readFileSync(join(house.dataDir, name)));
  const unfinished = book.erasures.filter(
    ({ requestId, visitorId, receiptId }) =>
      receiptId !== null && files.some((bytes) => bytes.includes(requestId) || bytes.includes(visitorId)),
  );
  expect(unfinished).toEqual([]);
}
