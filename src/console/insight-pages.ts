import { join } from 'node:path';
import type { Response, Router } from 'express';
import type { LogCheck } from '../consent/verify-service.ts';
import { DAY, HOUR } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import { wilson } from '../lib/wilson.ts';
import { languageSchema } from '../schema/banner.ts';
import { visitorClassSchema } from '../schema/responses.ts';
import { barChart, cellOf, lastSlots } from './charts.ts';
import type { Context } from './context.ts';
import {
  type GenerationView,
  type OverviewView,
  readBanner,
  readKeys,
  readLedger,
  readOverview,
  readTerms,
  verifyLedger,
} from './insight-service.ts';
import { usualPolicy } from './render.ts';
import type { ConsoleVisit, PageTable, Posted } from './session-guard.ts';

/** Overview, ledger, keys and purposes: what there is, in numbers with their denominators. */

const CLASSES = visitorClassSchema.options;
const CHOICES = ['granted', 'withdrawn', 'denied', 'gpc-opt-out'];
const GIVEN = ['agent', 'automation'] as const;
const HOURS = 24;
const DAYS = 14;
const SEQ = /^(?:0|[1-9]\d{0,14})$/;
/** Browsers hold a public key for five minutes; an open page may hold it for as long as it is open. */
const QUIET_MS = DAY;

/** When destroying a generation is safe: nothing was sealed to it for a day. */
export function adviceFor(key: GenerationView, now: number): string {
  if (key.state !== 'retiring') return key.state;
  const last = Math.max(key.lastAt ?? 0, key.publishedAt ?? 0);
  if (key.lastAt !== null && now - key.lastAt < QUIET_MS) return 'in-use';
  return now - last < QUIET_MS ? 'wait' : 'safe';
}

/** Those that are most surely wrong come first. */
function rulesByError(rules: OverviewView['rules']) {
  return rules
    .map((row) => ({ ...row, right: row.upheld + row.confirmed, rulings: row.upheld + row.overturned }))
    .map((row) => ({ ...row, total: row.rulings + row.confirmed + row.mistaken }))
    .filter(({ total }) => total > 0)
    .map((row) => ({ ...row, share: row.right / row.total, ...wilson(row.right, row.total) }))
    .sort((a, b) => a.high - b.high || b.total - a.total || a.rule.localeCompare(b.rule));
}

/** In the language itself, as its readers look for it. */
function languageName(code: string): string {
  return new Intl.DisplayNames([code], { type: 'language' }).of(code) ?? code;
}

async function showOverview({ context, response, staff, now }: ConsoleVisit): Promise<void> {
  const hours = lastSlots(now, HOUR, HOURS);
  const days = lastSlots(now, DAY, DAYS);
  const from = { verdicts: hours[0] ?? now, consent: days[0] ?? now };
  const view = await readOverview(context, staff, from);
  const { floor } = view;
  const sum = view.verdicts.reduce((total, { n }) => total + n, 0);
  context.render(response, 'overview', {
    here: 'overview',
    view,
    total: cellOf(sum, floor),
    verdicts: barChart(view.verdicts, CLASSES, { slots: hours, step: HOUR, floor }),
    consent: barChart(view.consent, CHOICES, { slots: days, step: DAY, floor }),
    rules: rulesByError(view.rules),
    advice: (key: GenerationView) => adviceFor(key, now),
    live: view.keys.filter((key) => key.state !== 'destroyed'),
  });
}

async function showLedger(
  { context, request, response, staff }: ConsoleVisit,
  check: LogCheck | 'too-large' | null = null,
): Promise<void> {
  const given = GIVEN.find((one) => one === request.query['given']) ?? null;
  const ledger = await readLedger(context, staff, given);
  if (!ledger) throw new Refusal('not-found');
  const asked = request.query['seq'];
  const seq = typeof asked === 'string' && SEQ.test(asked.trim()) ? Number(asked.trim()) : null;
  const proof = seq === null ? null : await context.log.proof(staff.kid, seq);
  const asText = typeof asked === 'string' ? asked : null;
  const values = { here: 'ledger', given, ledger, asked: asText, seq, proof, check };
  context.render(response, 'ledger', values, asked !== undefined && proof === null ? 404 : 200);
}

async function verify(posted: Posted): Promise<void> {
  await showLedger(posted, (await verifyLedger(posted.context, posted.staff)) ?? 'too-large');
}

async function showKeys({ context, response, staff, now }: ConsoleVisit): Promise<void> {
  const keys = await readKeys(context, staff);
  const advice = (key: GenerationView): string => adviceFor(key, now);
  context.render(response, 'keys', { here: 'keys', keys: [...keys].reverse(), advice });
}

async function showTerms({ context, request, response, staff }: ConsoleVisit): Promise<void> {
  const terms = await readTerms(context, staff);
  const asked = readLanguage(request.query['lang']);
  const language = terms.languages.includes(asked) ? asked : 'en';
  const policy = (nonce: string): string => framing(usualPolicy(nonce));
  context.render(response, 'terms', { here: 'terms', ...terms, language, languageName, policy });
}

/**
 * The consent banner itself, on an isolated page: its own origin (no cookie, no storage), no connection to
 * anywhere, and a stub server in the page. What is pressed there is sent to nobody.
 */

/** The page's own script and style: its own origin counts as another site, so they are open, as the banner is. */
const FILES = ['preview.js', 'preview.css'] as const;

const policy = (nonce: string): string =>
  [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
    // Also outside of the frame.
    'sandbox allow-scripts',
  ].join('; ');

/** What the page of purposes may do besides: show this one. */
const framing = (base: string): string => `${base}; frame-src 'self'`;

function readLanguage(value: unknown): string {
  const read = languageSchema.safeParse(value);
  return read.success ? read.data : 'en';
}

async function showBanner({ context, request, response, staff }: ConsoleVisit): Promise<void> {
  const shown = await readBanner(context, staff, readLanguage(request.query['lang']));
  response.set({ 'x-frame-options': 'SAMEORIGIN' });
  context.render(response, 'banner', { ...shown, policy });
}

export function previewFiles(router: Router, { views }: Context): void {
  for (const name of FILES) {
    router.get(`/banner/${name}`, (_request, response: Response) => {
      response.set({ 'cross-origin-resource-policy': 'cross-origin', 'cache-control': 'no-cache' });
      response.sendFile(join(views, 'assets', name), { cacheControl: false });
    });
  }
}

export const insightPages: PageTable = {
  pages: {
    '/overview': ['staff', showOverview],
    '/ledger': ['staff', showLedger],
    '/keys': ['staff', showKeys],
    '/terms': ['staff', showTerms],
    '/banner': ['staff', showBanner],
  },
  forms: { '/ledger/verify': ['staff', verify] },
};
