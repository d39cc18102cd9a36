import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SealedBundle } from '../../../src/schema/bundle.ts';
import type { IngestResponse } from '../../../src/schema/responses.ts';
import { REASON } from '../../support/constants.ts';
import { INGEST } from '../../support/expect.ts';
import type { Reply } from '../../support/http.ts';
import { browserHeaders } from '../../support/samples.ts';
import { createBundle } from '../../support/seal.ts';
import type { House } from './house.ts';

/**
 * The load does what people and backends do all day and records their answers; the judge compares them with
 * the data.
 */

/** `null`: no answer came, so it is done or not; nobody knows. */
export interface Visited {
  readonly bundle: SealedBundle;
  readonly answer: IngestResponse | null;
}

export type Choice = 'granted' | 'withdrawn' | 'denied';

export interface Chosen {
  readonly choice: Choice;
  readonly place: { readonly seq: number; readonly hash: string } | null;
}

export interface Contested {
  readonly requestId: string;
  readonly visitorId: string;
  readonly contestId: string | null;
  readonly outcome: 'upheld' | 'overturned' | null;
  /** A resolution was asked for and nobody knows whether it was made. */
  readonly resolving: boolean;
}

export interface Erased {
  readonly requestId: string;
  readonly visitorId: string;
  readonly receiptId: string | null;
}

export interface Book {
  readonly visits: Visited[];
  /** Each principal's choices in order. */
  readonly choices: Map<string, Chosen[]>;
  readonly contests: Contested[];
  readonly erasures: Erased[];
  /** Principals whose consent was shredded; null: nobody knows. */
  readonly shredded: Map<string, boolean | null>;
  /** Answers that are no success: what a fault may show, by status. */
  readonly refusals: Reply[];
  acknowledged: number;
  unanswered: number;
  /** Called in the turn in which an answer arrives: what is answered too early is lost by a kill right then. */
  onAcknowledged: ((path: string) => void) | null;
}

export const newBook = (): Book => ({
  visits: [],
  choices: new Map(),
  contests: [],
  erasures: [],
  shredded: new Map(),
  refusals: [],
  acknowledged: 0,
  unanswered: 0,
  onAcknowledged: null,
});

export const PURPOSE = 'device-identification';
const PAUSE_MS = 20;

/** The answer when it has the status that acknowledges; else noted, and null. */
async function answered(
  book: Book,
  expected: number,
  path: string,
  ask: (path: string) => Promise<Reply>,
): Promise<Reply | null> {
  let reply: Reply;
  try {
    reply = await ask(path);
  } catch {
    book.unanswered += 1;
    return null;
  }
  if (reply.status === expected) {
    book.acknowledged += 1;
    book.onAcknowledged?.(path);
    return reply;
  }
  book.refusals.push(reply);
  // A server that refuses is not to be asked as fast as one that works.
  await sleep(PAUSE_MS);
  return null;
}

export const send = (house: House, bundle: SealedBundle): Promise<Reply> =>
  house.post(INGEST, bundle, '', browserHeaders());

export async function visit(house: House, book: Book): Promise<IngestResponse | null> {
  const bundle = createBundle(house.target);
  const reply = await answered(book, 200, INGEST, () => send(house, bundle));
  const answer = reply ? (reply.json() as IngestResponse) : null;
  book.visits.push({ bundle, answer });
  return answer;
}

async function choose(house: House, book: Book, principalId: string, choice: Choice): Promise<boolean> {
  const action = { granted: 'grant', withdrawn: 'withdraw', denied: 'deny' }[choice];
  const body = { principalId, purposes: [PURPOSE] };
  const reply = await answered(book, 201, `/v1/consent/${action}`, (path) => house.post(path, body));
  const place = reply ? (reply.json() as NonNullable<Chosen['place']>) : null;
  const chosen = book.choices.get(principalId) ?? [];
  book.choices.set(principalId, [...chosen, { choice, place }]);
  return place !== null;
}

async function consent(house: House, book: Book, turn: number, shreds: boolean): Promise<void> {
  const principalId = `p-${randomUUID()}`;
  if (!(await choose(house, book, principalId, 'granted'))) return;
  if (turn % 3 === 0) await choose(house, book, principalId, 'withdrawn');
  if (turn % 3 === 1) await choose(house, book, principalId, 'denied');
  if (shreds && turn % 5 === 2) await shred(house, book, principalId);
}

async function shred(house: House, book: Book, principalId: string): Promise<void> {
  const opened = await answered(book, 201, '/v1/sessions', (path) => house.post(path, { principalId }));
  if (!opened) return;
  const { token } = opened.json() as { token: string };
  const reply = await answered(book, 200, '/v1/principals/erase', (path) => house.post(path, {}, token));
  book.shredded.set(principalId, reply ? true : null);
}

async function contest(house: House, book: Book, turn: number): Promise<void> {
  const answer = await visit(house, book);
  if (!answer?.visitorId) return;
  const { requestId, visitorId } = answer;
  const filed = await answered(book, 202, '/privacy/contest', (path) =>
    house.post(path, { requestId }, house.subject(visitorId)),
  );
  const contestId = filed ? (filed.json() as { contestId: string }).contestId : null;
  const entry: Contested = { requestId, visitorId, contestId, outcome: null, resolving: false };
  if (contestId === null || turn % 2 === 0) {
    book.contests.push(entry);
    return;
  }
  const outcome = turn % 4 === 1 ? 'upheld' : 'overturned';
  const ruling = { contestId, outcome, reason: REASON };
  const resolved = await answered(book, 200, '/privacy/contest/resolve', (path) =>
    house.post(path, ruling, house.staff('reviewer')),
  );
  book.contests.push({ ...entry, outcome: resolved ? outcome : null, resolving: !resolved });
}

async function erase(house: House, book: Book, turn: number): Promise<void> {
  const answer = await visit(house, book);
  if (!answer?.visitorId) return;
  const { requestId, visitorId } = answer;
  const reply = await answered(book, 200, '/privacy/erase', (path) =>
    turn % 2 === 0
      ? house.post(path, {}, house.subject(visitorId))
      : house.post(path, { requestId }, house.staff('dpo')),
  );
  const receiptId = reply ? (reply.json() as { receiptId: string }).receiptId : null;
  book.erasures.push({ requestId, visitorId, receiptId });
}

export interface LoadOptions {
  readonly visitors?: number;
  readonly choosers?: number;
  readonly contesters?: number;
  /** None: nobody's consent is shredded either. */
  readonly erasers?: number;
}

/** Works until `over` says so; what is under way then is waited for. */
export async function runLoad(
  house: House,
  book: Book,
  over: () => boolean,
  { visitors = 8, choosers = 6, contesters = 2, erasers = 2 }: LoadOptions = {},
): Promise<void> {
  const loop = async (work: (turn: number) => Promise<unknown>): Promise<void> => {
    for (let turn = 0; !over(); turn += 1) await work(turn);
  };
  const repeatWork = (count: number, work: (turn: number) => Promise<unknown>): Promise<void>[] =>
    Array.from({ length: count }, () => loop(work));
  await Promise.all([
    ...repeatWork(visitors, () => visit(house, book)),
    ...repeatWork(choosers, (turn) => consent(house, book, turn, erasers > 0)),
    ...repeatWork(contesters, (turn) => contest(house, book, turn)),
    ...repeatWork(erasers, (turn) => erase(house, book, turn)),
  ]);
}

/** One a kind of what is acknowledged. */
export const KINDS: readonly string[] = [
  INGEST,
  '/v1/consent/grant',
  '/v1/consent/withdraw',
  '/privacy/contest',
  '/privacy/contest/resolve',
  '/privacy/erase',
  '/v1/principals/erase',
];

/** Refusals that are no clear 503 with Retry-After, with how often each was told; a fault may show nothing else. */
export function refusalsOf(book: Book): Readonly<Record<string, number>> {
  const unclear = new Map<string, number>();
  for (const { status, headers, text } of book.refusals) {
    const refusal = `${status} ${headers['retry-after'] ?? 'without Retry-After'} ${text.slice(0, 60)}`;
    if (!/^503 \d+ \{"error":"unavailable"/.test(refusal))
      unclear.set(refusal, (unclear.get(refusal) ?? 0) + 1);
  }
  return Object.fromEntries(unclear);
}
