import { randomBytes } from 'node:crypto';
import type { Config } from '../config.ts';
import { type Clock, DAY } from '../lib/clock.ts';
import type { RunningApp } from '../ops/running.ts';
import type { IngestResponse, PubKeyResponse } from '../schema/responses.ts';
import { PAST_CASES, type PastCase, type PastRuling } from './past-cases.ts';
import { type DemoVisit, drivenBrowser, pastVisits, sealVisit } from './visits.ts';

/**
 * Sends visits to the demo's server over HTTP: one at a time for the tour, and those of the past two weeks
 * with an earlier clock.
 */

export interface Shop {
  readonly kid: string;
  /** The origin of the page. */
  readonly origin: string;
  /** The API key of the shop's backend. */
  readonly secret: string;
}

/** Starts the server of gpd with this clock. */
export type StartApp = (config: Config, clock: Clock) => Promise<RunningApp>;

const post = (url: URL, headers: Readonly<Record<string, string>>, body: object): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

/** Seals and sends one visit as the agent does. */
export async function sendVisit(
  { kid, origin }: Omit<Shop, 'secret'>,
  url: string,
  visit: DemoVisit,
  now: number,
) {
  const key = await fetch(new URL(`/_fp/pubkey?kid=${encodeURIComponent(kid)}`, url));
  const { publicKey } = (await key.json()) as PubKeyResponse;
  const bundle = sealVisit({ kid, publicKey }, visit, now, randomBytes);
  return post(new URL('/_fp/i/v1', url), { ...visit.headers, origin }, bundle);
}

type Token = (account: string, at: number) => Promise<string>;

/** Files the objection of a case, from the browser that was judged. @returns its id */
async function fileCase(shop: Shop, url: string, at: number, { device, statement }: PastCase) {
  const answer = await sendVisit(shop, url, drivenBrowser(device), at);
  const { transparencyToken: token } = (await answer.json()) as IngestResponse;
  const cookie = answer.headers.getSetCookie().map((one) => one.split(';')[0]);
  const headers = { origin: shop.origin, cookie: cookie.join('; ') };
  const filed = await post(new URL('/me', url), headers, { token, action: 'contest', statement });
  return ((await filed.json()) as { contestId: string }).contestId;
}

/** Both reviewers rule: the shop has four eyes. */
async function ruleOn(
  contestId: string,
  { outcome, reasons }: PastRuling,
  url: string,
  token: (account: string) => Promise<string>,
) {
  for (const [i, account] of ['rosa', 'remy'].entries()) {
    const headers = { authorization: `Bearer ${await token(account)}` };
    const body = { contestId, outcome, reason: reasons[i] };
    await post(new URL('/privacy/contest/resolve', url), headers, body);
  }
}

/** One choice per this many visits; each fifth is a denial, each seventh is withdrawn later. */
const VISITS_PER_CHOICE = 4;
const DENIAL_EVERY = 5;
const WITHDRAWAL_EVERY = 7;

/** Records the choice of one customer in the consent log. */
async function recordChoice({ secret }: Shop, url: string, number: number) {
  const headers = { authorization: `Bearer ${secret}` };
  const body = { principalId: `customer-${number}`, purposes: ['device-identification'] };
  const acts =
    number % DENIAL_EVERY === 0
      ? ['deny']
      : number % WITHDRAWAL_EVERY === 0
        ? ['grant', 'withdraw']
        : ['grant'];
  for (const act of acts) await post(new URL(`/v1/consent/${act}`, url), headers, body);
}

export interface SeedNeeds {
  readonly config: Config;
  readonly start: StartApp;
  /** All visits are before this time. */
  readonly now: number;
}

interface Step {
  readonly at: number;
  readonly act: (url: string) => Promise<unknown>;
}

/** Filing a case, and the ruling on it some days later. */
function caseSteps(shop: Shop, token: Token, now: number): readonly Step[] {
  return PAST_CASES.flatMap((one): Step[] => {
    const filedAt = now - one.days * DAY;
    let contestId = '';
    const file = async (url: string): Promise<void> => {
      contestId = await fileCase(shop, url, filedAt, one);
    };
    const { ruling } = one;
    if (!ruling) return [{ at: filedAt, act: file }];
    const at = filedAt + ruling.after * DAY;
    return [
      { at: filedAt, act: file },
      { at, act: (url) => ruleOn(contestId, ruling, url, (account) => token(account, at)) },
    ];
  });
}

/**
 * Sends two weeks of visits and choices and five weeks of cases to the real server, whose clock is set to the
 * time of each.
 */
export async function seedPast(shop: Shop, token: Token, { config, start, now }: SeedNeeds): Promise<void> {
  const visits = pastVisits(now).map(({ at: visitedAt, visit }): Step => {
    return { at: visitedAt, act: (url) => sendVisit(shop, url, visit, visitedAt) };
  });
  const steps = [...visits, ...caseSteps(shop, token, now)].toSorted((a, b) => a.at - b.at);
  let at = steps[0]?.at ?? now;
  const address = { host: '127.0.0.1', port: 0, metrics_listen: null };
  const app = await start({ ...config, ...address }, () => at);
  // Not the public origin, which names the port of the demo itself.
  const url = `http://${address.host}:${app.port}`;
  try {
    for (const [index, { at: stepAt, act }] of steps.entries()) {
      at = stepAt;
      await act(url);
      if (index % VISITS_PER_CHOICE === 0) await recordChoice(shop, url, index / VISITS_PER_CHOICE);
    }
    at = now;
  } finally {
    await app.stop();
  }
}

/**
 * The bot of the tour is one device: after a review overturned its verdict, the next visit shows the result.
 */
export const TOUR_BOT = drivenBrowser('the bot of the tour');
