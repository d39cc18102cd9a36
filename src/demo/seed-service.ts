import { randomBytes } from 'node:crypto';
import { DAY } from '../lib/clock.ts';
import type { IngestResponse, PubKeyResponse } from '../schema/responses.ts';
import type { Filling } from './filling.ts';
import { PAST_CASES, type PastCase, type PastRuling } from './past-cases.ts';
import { type DemoVisit, drivenBrowser, pastVisits, sealVisit } from './visits.ts';

/** Sends visits to the demo's server over HTTP: one for the tour, and those of the past two weeks. */

export interface Shop {
  readonly kid: string;
  /** The origin of the page. */
  readonly origin: string;
  /** The API key of the shop's backend. */
  readonly secret: string;
}

type Headers = Readonly<Record<string, string>>;
type Post = (path: string, headers: Headers, body: object) => Promise<Response>;

/** @param always headers of every request */
const postTo =
  (url: string, always: Headers = {}): Post =>
  (path, headers, body) =>
    fetch(new URL(path, url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...always, ...headers },
      body: JSON.stringify(body),
    });

async function readPublicKey(kid: string, url: string, headers: Headers = {}): Promise<string> {
  const answer = await fetch(new URL(`/_fp/pubkey?kid=${encodeURIComponent(kid)}`, url), { headers });
  return ((await answer.json()) as PubKeyResponse).publicKey;
}

interface Visited {
  readonly kid: string;
  readonly origin: string;
  readonly publicKey: string;
}

const postVisit = ({ origin, ...to }: Visited, post: Post, visit: DemoVisit, now: number) =>
  post('/_fp/i/v1', { ...visit.headers, origin }, sealVisit(to, visit, now, randomBytes));

/** Seals and sends one visit as the agent does. */
export async function sendVisit(
  { kid, origin }: Omit<Shop, 'secret'>,
  url: string,
  visit: DemoVisit,
  now: number,
) {
  return postVisit({ kid, origin, publicKey: await readPublicKey(kid, url) }, postTo(url), visit, now);
}

type Token = (account: string, at: number) => Promise<string>;

/** Files the objection of a case, from the browser that was judged. @returns its id */
async function fileCase(shop: Visited, post: Post, at: number, { device, statement }: PastCase) {
  const answer = await postVisit(shop, post, drivenBrowser(device), at);
  const { transparencyToken: token } = (await answer.json()) as IngestResponse;
  const cookie = answer.headers.getSetCookie().map((one) => one.split(';')[0]);
  const headers = { origin: shop.origin, cookie: cookie.join('; ') };
  const filed = await post('/me', headers, { token, action: 'contest', statement });
  return ((await filed.json()) as { contestId: string }).contestId;
}

/** Both reviewers rule: the shop has four eyes. */
async function ruleOn(
  contestId: string,
  { outcome, reasons }: PastRuling,
  post: Post,
  token: (account: string) => Promise<string>,
) {
  for (const [i, account] of ['rosa', 'remy'].entries()) {
    const headers = { authorization: `Bearer ${await token(account)}` };
    const body = { contestId, outcome, reason: reasons[i] };
    await post('/privacy/contest/resolve', headers, body);
  }
}

/** One choice per this many visits; each fifth is a denial, each seventh is withdrawn later. */
const VISITS_PER_CHOICE = 4;
const DENIAL_EVERY = 5;
const WITHDRAWAL_EVERY = 7;

/** Records the choice of one customer in the consent log. */
async function recordChoice(secret: string, post: Post, number: number) {
  const headers = { authorization: `Bearer ${secret}` };
  const body = { principalId: `customer-${number}`, purposes: ['device-identification'] };
  const acts =
    number % DENIAL_EVERY === 0
      ? ['deny']
      : number % WITHDRAWAL_EVERY === 0
        ? ['grant', 'withdraw']
        : ['grant'];
  for (const act of acts) await post(`/v1/consent/${act}`, headers, body);
}

export interface SeedNeeds {
  readonly filling: Filling;
  readonly url: string;
  /** All visits are before this time. */
  readonly now: number;
}

interface Step {
  readonly at: number;
  readonly act: (post: Post) => Promise<unknown>;
}

/** Filing a case, and the ruling on it some days later. */
function caseSteps(shop: Visited, token: Token, now: number): readonly Step[] {
  return PAST_CASES.flatMap((one): Step[] => {
    const filedAt = now - one.days * DAY;
    let contestId = '';
    const file = async (post: Post): Promise<void> => {
      contestId = await fileCase(shop, post, filedAt, one);
    };
    const { ruling } = one;
    if (!ruling) return [{ at: filedAt, act: file }];
    const at = filedAt + ruling.after * DAY;
    return [
      { at: filedAt, act: file },
      { at, act: (post) => ruleOn(contestId, ruling, post, (account) => token(account, at)) },
    ];
  });
}

/** Sends two weeks of visits and choices and five weeks of cases, each at its time. */
export async function seedPast(shop: Shop, token: Token, { filling, url, now }: SeedNeeds): Promise<void> {
  const { kid, origin, secret } = shop;
  const visited = { kid, origin, publicKey: await readPublicKey(kid, url, filling.headers) };
  const visits = pastVisits(now).map(
    ({ at, visit }): Step => ({ at, act: (post) => postVisit(visited, post, visit, at) }),
  );
  const steps = [...visits, ...caseSteps(visited, token, now)].toSorted((a, b) => a.at - b.at);
  const post = postTo(url, filling.headers);
  for (const [index, { at, act }] of steps.entries()) {
    filling.goTo(at);
    await act(post);
    if (index % VISITS_PER_CHOICE === 0) await recordChoice(secret, post, index / VISITS_PER_CHOICE);
  }
}

/**
 * The bot of the tour is one device: after a review overturned its verdict, the next visit shows the result.
 */
export const TOUR_BOT = drivenBrowser('the bot of the tour');
