import type { Router } from 'express';
import { z } from 'zod';
import type { Mail } from '../egress/smtp.ts';
import { exactRouter } from '../http/express-app.ts';
import { speakTo } from '../http/people.ts';
import { toldOnce } from '../ingest/verdict/classify.ts';
import { Refusal } from '../lib/errors.ts';
import { fillWords } from '../lib/people/words.ts';
import type { DecisionResponse } from '../schema/responses.ts';
import { contestIdSchema } from '../schema/rights.ts';
import { tenantSettingsSchema } from '../tenants/settings.ts';
import { DEMO_USERS } from './idp-service.ts';
import { type Shop, sendVisit, TOUR_BOT } from './seed-service.ts';
import { SHOP_WORDS, shopText, WARES } from './shop-words.ts';

/**
 * The page of the tour, and the backend of its shop, which asks gpd for verdicts with a key that the browser
 * never sees.
 */

export interface TourNeeds {
  readonly shop: Shop;
  readonly publishableKey: string;
  /** Origins under which the page can be open: localhost and 127.0.0.1. */
  readonly origins: readonly string[];
  readonly url: () => string;
  /** The newest first. */
  readonly mails: () => readonly Mail[];
  readonly signInNext: (account: string) => void;
  readonly verifyCommand: string;
  readonly verifyLog: () => Promise<string>;
}

/** Only the page itself may send these requests, because they write or are expensive. @throws {Refusal} */
function requireOrigin({ origins }: TourNeeds, origin: string | undefined): string {
  if (origin === undefined || !origins.includes(origin)) throw new Refusal('origin-not-allowed');
  return origin;
}

function addPage(router: Router, { shop, publishableKey, verifyCommand }: TourNeeds): void {
  router.get('/', (_request, response) => response.redirect('/demo'));
  router.get('/demo', (_request, response) => {
    response.set('cache-control', 'no-store');
    const people = speakTo(response);
    const { lang } = people;
    const price = new Intl.NumberFormat(lang, {
      style: 'currency',
      currency: 'EUR',
      maximumFractionDigits: 0,
    });
    response.render('demo/tour', {
      ...people,
      text: (key: string, values?: Readonly<Record<string, string>>) =>
        fillWords(shopText(lang, key), values),
      scriptWords: SHOP_WORDS[lang].script,
      wares: WARES.map((ware) => ({ ...ware, priceText: price.format(ware.price) })),
      kid: shop.kid,
      shopName: 'Lanterne',
      publishableKey,
      verifyCommand,
      retentionDays: tenantSettingsSchema.shape['retention.days'].parse(undefined),
    });
  });
}

/** Mails that gpd wrote and the demo did not send. */
function addMails(router: Router, { mails }: TourNeeds): void {
  router.get('/demo/mails', (_request, response) => {
    response.set('cache-control', 'no-store');
    response.render('demo/mails', { mails: mails() });
  });
}

/** Shows every part of a page in every state, for those who build or review pages. */
function addParts(router: Router): void {
  router.get('/docs/parts', ({ query }, response) => {
    const dir = query['rtl'] === undefined ? 'ltr' : 'rtl';
    response.render('demo/parts', { dir, people: query['people'] !== undefined });
  });
}

/** The shop's backend looks the verdict up, because a browser could change one that it delivers. */
function addDecisions(router: Router, { shop, url }: TourNeeds): void {
  router.get('/demo/decision', async (request, response) => {
    const { requestId } = request.query;
    if (typeof requestId !== 'string') throw new Refusal('invalid-request');
    const answer = await fetch(new URL(`/v1/decisions/${encodeURIComponent(requestId)}`, url()), {
      headers: { authorization: `Bearer ${shop.secret}` },
    });
    const decision = (await answer.json()) as Partial<DecisionResponse>;
    response
      .status(answer.status)
      .set('cache-control', 'no-store')
      .json(decision.rules ? { ...decision, rules: toldOnce(decision.rules) } : decision);
  });
}

/**
 * Sends a visit of the bot. The page gets the answer with its cookie, so that it can ask for a review of that
 * visit.
 */
function addBot(router: Router, needs: TourNeeds): void {
  router.post('/demo/bot', async (request, response) => {
    const origin = requireOrigin(needs, request.headers.origin);
    const answer = await sendVisit({ ...needs.shop, origin }, needs.url(), TOUR_BOT, Date.now());
    response.status(answer.status).set('cache-control', 'no-store');
    for (const cookie of answer.headers.getSetCookie()) response.append('set-cookie', cookie);
    response.json(await answer.json());
  });
}

const caseSchema = z.object({
  as: z.enum(DEMO_USERS.map(({ account }) => account)),
  case: contestIdSchema.optional(),
});

/** Signs a person in with one click and opens the contest. */
function addSignIn(router: Router, { signInNext }: TourNeeds): void {
  router.get('/demo/console', (request, response) => {
    const { data } = caseSchema.safeParse(request.query);
    if (!data) throw new Refusal('invalid-request');
    signInNext(data.as);
    const back = data.case === undefined ? '/console' : `/console/contests/${data.case}`;
    response.redirect(303, `/console/login?switch=select_account&back=${encodeURIComponent(back)}`);
  });
}

/** Runs the real command in this process; requests that arrive while it runs get the same result. */
function addVerify(router: Router, needs: TourNeeds): void {
  let running: Promise<string> | null = null;
  router.post('/demo/verify', async (request, response) => {
    requireOrigin(needs, request.headers.origin);
    running ??= needs.verifyLog().finally(() => {
      running = null;
    });
    response.set('cache-control', 'no-store').json({ output: await running });
  });
}

export function tourRoutes(needs: TourNeeds): Router {
  const router = exactRouter();
  for (const add of [addPage, addMails, addParts, addDecisions, addBot, addSignIn, addVerify])
    add(router, needs);
  return router;
}
