import { randomBytes } from 'node:crypto';
import type { Config } from '../config.ts';
import { type Clock, DAY } from '../lib/clock.ts';
import type { RunningApp } from '../ops/running.ts';
import type { IngestResponse, PubKeyResponse } from '../schema/responses.ts';
import { type DemoVisit, drivenBrowser, pastVisits, sealVisit } from './visits.ts';

/** Visits to the demo's shop, over HTTP: now, and in the two weeks before the demo began, on a server with an earlier clock. */

export interface Shop {
  readonly kid: string;
  /** The origin of the page. */
  readonly origin: string;
  /** The API key of the shop's backend. */
  readonly secret: string;
}

/** Starts a server with this clock. */
export type StartApp = (config: Config, clock: Clock) => Promise<RunningApp>;

const post = (url: URL, headers: Readonly<Record<string, string>>, body: object): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

/** One visit, sealed and sent as the agent does it. */
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

/** People who asked for a review before the demo began. */
const CASES = [
  { device: 'case-1', days: 3, statement: 'I fill in forms with a screen reader and never touch the mouse.' },
  {
    device: 'case-2',
    days: 1,
    statement: 'My browser is remote-controlled by my employer’s test tool. I did shop.',
  },
];

async function fileCase(shop: Shop, url: string, at: number, { device, statement }: (typeof CASES)[number]) {
  const answer = await sendVisit(shop, url, drivenBrowser(device), at);
  const { transparencyToken: token } = (await answer.json()) as IngestResponse;
  const cookie = answer.headers.getSetCookie().map((one) => one.split(';')[0]);
  await post(
    new URL('/me', url),
    { origin: shop.origin, cookie: cookie.join('; ') },
    {
      token,
      action: 'contest',
      statement,
    },
  );
}

/** Every so many visits a customer chooses. */
const VISITS_PER_CHOICE = 4;
const DENIES = 5;
const WITHDRAWS = 7;

/** The choice of a customer: most agree, some decline, some withdraw later. */
async function choose({ secret }: Shop, url: string, number: number) {
  const headers = { authorization: `Bearer ${secret}` };
  const body = { principalId: `customer-${number}`, purposes: ['device-identification'] };
  const acts =
    number % DENIES === 0 ? ['deny'] : number % WITHDRAWS === 0 ? ['grant', 'withdraw'] : ['grant'];
  for (const act of acts) await post(new URL(`/v1/consent/${act}`, url), headers, body);
}

export interface SeedNeeds {
  readonly config: Config;
  readonly start: StartApp;
  /** The visits end before it. */
  readonly now: number;
}

/** Two weeks of visits, choices and open cases through the real server, whose clock is set to each of them. */
export async function seedPast(shop: Shop, { config, start, now }: SeedNeeds): Promise<void> {
  const visits = [
    ...pastVisits(now).map((one) => ({
      ...one,
      act: (url: string) => sendVisit(shop, url, one.visit, one.at),
    })),
    ...CASES.map((one) => {
      const when = now - one.days * DAY;
      return { at: when, act: (url: string) => fileCase(shop, url, when, one) };
    }),
  ].toSorted((a, b) => a.at - b.at);
  let at = visits[0]?.at ?? now;
  const here = { host: '127.0.0.1', port: 0, metrics_listen: null };
  const app = await start({ ...config, ...here }, () => at);
  // The public origin names the port of the demo itself.
  const url = `http://${here.host}:${app.port}`;
  try {
    for (const [index, { at: when, act }] of visits.entries()) {
      at = when;
      await act(url);
      if (index % VISITS_PER_CHOICE === 0) await choose(shop, url, index / VISITS_PER_CHOICE);
    }
    at = now;
  } finally {
    await app.stop();
  }
}

/** The bot of the tour: the same device on each press, so that a review of it is seen the next time. */
export const theBot = drivenBrowser('the bot of the tour');
