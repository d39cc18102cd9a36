import { join } from 'node:path';
import type { Response, Router } from 'express';
import type { LogCheck } from '../consent/verify-service.ts';
import { DAY } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import { languageSchema } from '../schema/banner.ts';
import type { Context } from './context-service.ts';
import {
  type GenerationView,
  readBanner,
  readKeys,
  readLedger,
  readTerms,
  verifyLedger,
} from './insight-service.ts';
import { usualPolicy } from './render.ts';
import type { ConsoleVisit, FormVisit, PageTable } from './session-guard-service.ts';
import { roughOf, shareOf } from './small-counts.ts';

/** Pages that only show: ledger, keys, purposes, and a preview of the banner. */

const GIVEN_BY = ['agent', 'automation'] as const;
const SEQ = /^(?:0|[1-9]\d{0,14})$/;
/** Browsers cache a public key for five minutes, but an open page uses it until it is closed. */
const QUIET_MS = DAY;

/** A generation can be destroyed safely if it decrypted nothing for a day. */
export function adviseDestruction(key: GenerationView, now: number): string {
  if (key.state !== 'retiring') return key.state;
  const last = Math.max(key.lastAt ?? 0, key.publishedAt ?? 0);
  if (key.lastAt !== null && now - key.lastAt < QUIET_MS) return 'in-use';
  return now - last < QUIET_MS ? 'wait' : 'safe';
}

/** Names a language in that language, because its readers look for that name. */
function languageName(code: string): string {
  return new Intl.DisplayNames([code], { type: 'language' }).of(code) ?? code;
}

async function showLedger(
  { context, request, response, staff }: ConsoleVisit,
  check: LogCheck | 'too-large' | null = null,
): Promise<void> {
  const givenBy = GIVEN_BY.find((one) => one === request.query['given']) ?? null;
  const ledger = await readLedger(context, staff, givenBy);
  if (!ledger) throw new Refusal('not-found');
  const seqParameter = request.query['seq'];
  const seq =
    typeof seqParameter === 'string' && SEQ.test(seqParameter.trim()) ? Number(seqParameter.trim()) : null;
  const proof = seq === null ? null : await context.log.proof(staff.kid, seq);
  const asText = typeof seqParameter === 'string' ? seqParameter : null;
  const values = { here: 'ledger', given: givenBy, ledger, asked: asText, seq, proof, check };
  context.render(response, 'ledger', values, seqParameter !== undefined && proof === null ? 404 : 200);
}

async function verify(visit: FormVisit): Promise<void> {
  await showLedger(visit, (await verifyLedger(visit.context, visit.staff)) ?? 'too-large');
}

async function showKeys({ context, response, staff, now }: ConsoleVisit): Promise<void> {
  const keys = await readKeys(context, staff);
  const advice = (key: GenerationView): string => adviseDestruction(key, now);
  const rough = (count: number): string => roughOf(count, context.config.k_anonymity_floor);
  context.render(response, 'keys', { here: 'keys', keys: [...keys].reverse(), advice, rough });
}

async function showTerms({ context, request, response, staff }: ConsoleVisit): Promise<void> {
  const { visits, ...terms } = await readTerms(context, staff);
  const requestedLanguage = readLanguage(request.query['lang']);
  const language = terms.languages.includes(requestedLanguage) ? requestedLanguage : 'en';
  const previewPolicy = (nonce: string): string => allowPreviewFrame(usualPolicy(nonce));
  context.render(response, 'terms', {
    here: 'terms',
    ...terms,
    visits: visits.all === 0 ? null : shareOf(visits.gpc, visits.all, visits.floor, visits.days),
    language,
    languageName,
    policy: previewPolicy,
  });
}

/** The sandboxed preview has an opaque origin, so these files are served to any origin, like the banner's. */
const PREVIEW_FILES = ['preview.js', 'preview.css'] as const;

/**
 * The preview shows the real banner in a sandbox: without cookies, storage or connections,
 * and with a stub of the server in the page. A button that is pressed there sends nothing.
 */
const policy = (nonce: string): string =>
  [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
    // The sandbox also applies if the page is opened without its frame.
    'sandbox allow-scripts',
  ].join('; ');

/** The page of purposes may additionally frame the preview. */
const allowPreviewFrame = (base: string): string => `${base}; frame-src 'self'`;

function readLanguage(value: unknown): string {
  const read = languageSchema.safeParse(value);
  return read.success ? read.data : 'en';
}

async function showBanner({ context, request, response, staff }: ConsoleVisit): Promise<void> {
  const shown = await readBanner(context, staff, readLanguage(request.query['lang']));
  response.set({ 'x-frame-options': 'SAMEORIGIN' });
  context.render(response, 'banner', { ...shown, policy });
}

export function registerPreviewFiles(router: Router, { views }: Context): void {
  for (const name of PREVIEW_FILES) {
    router.get(`/banner/${name}`, (_request, response: Response) => {
      response.set({ 'cross-origin-resource-policy': 'cross-origin', 'cache-control': 'no-cache' });
      response.sendFile(join(views, 'assets', name), { cacheControl: false });
    });
  }
}

export const insightPages: PageTable = {
  pages: {
    '/ledger': ['staff', showLedger],
    '/keys': ['staff', showKeys],
    '/terms': ['staff', showTerms],
    '/banner': ['staff', showBanner],
  },
  forms: { '/ledger/verify': ['staff', verify] },
};
