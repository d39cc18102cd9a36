import { browserGpc, untilHydrated } from '../../browser/page.ts';
import { PURPOSE } from '../consent-gate.ts';
import { identifyFrom } from '../identify.ts';
import { endpointOf } from '../server.ts';
import type { ConsentReceipt, Identified, IdentifyResult, IngestResponse } from '../types.ts';
import { fillConsents, type PageConsent } from './consents.ts';
import { WORDS } from './locales/en.ts';
import {
  el,
  fillTyped,
  keepTyped,
  loadWaysLeft,
  type Page,
  postForm,
  showReply,
  showStatus,
} from './page.ts';
import { receiptButtons } from './receipts.ts';

/**
 * `<div data-gpd-my-data data-kid="KID"></div>` becomes a page about a person's data. Each look-up is one
 * verdict with its transparency token. The server renders the answer, as it does for browsers without
 * scripts; this script inserts it.
 */

const pageConsent = (): PageConsent | undefined =>
  (globalThis as { gpd?: { consent?: PageConsent } }).gpd?.consent;

/** The person's agreement now: the banner's receipt if there is one, because a tenant may require proof. */
async function currentReceipt(): Promise<ConsentReceipt> {
  // While the banner asks, its receipt would wait; here the pressed button is the choice.
  const isAsking = pageConsent()?.state?.().phase === 'asking';
  const recorded = isAsking
    ? null
    : await pageConsent()
        ?.receipt?.()
        .catch(() => null);
  if (recorded?.purposes.includes(PURPOSE) === true) return recorded;
  return { purposes: [PURPOSE], gpc: browserGpc(), version: 0, issuedAt: Date.now() };
}

function problemOf(result: IdentifyResult): string {
  if (result.sent) {
    const { reason, consentState } = result.response;
    if (reason !== 'consent-missing') return `${WORDS.refused} ${clockNote(result)}`.trim();
    // GPC may have come as a header alone.
    return consentState.gpc ? WORDS.gpc : WORDS.unproven;
  }
  return result.reason === 'gpc' ? WORDS.gpc : WORDS.away;
}

/** @returns an empty text if the clock is right */
function clockNote({ clockAheadMs = 0 }: Identified): string {
  if (clockAheadMs === 0) return '';
  const minutes = Math.round(Math.abs(clockAheadMs) / 60_000);
  const duration =
    minutes < 120
      ? WORDS.minutes(minutes)
      : minutes < 48 * 60
        ? WORDS.hours(Math.round(minutes / 60))
        : WORDS.days(Math.round(minutes / 1440));
  return WORDS.clock(duration, clockAheadMs > 0);
}

/** The verdict alone; it is all that can be shown without a transparency token. */
function verdictOf({ class: name, requestId, visitorId }: IngestResponse): HTMLElement {
  return el(
    'section',
    { 'data-testid': 'verdict' },
    el('h2', {}, WORDS.verdictTitle),
    el('p', { class: 'answer' }, WORDS.classes[name]),
    ...(visitorId === null ? [el('p', {}, WORDS.nobody)] : []),
    el('p', { class: 'quiet' }, WORDS.request, ' ', el('code', {}, requestId)),
  );
}

/** @returns the text for the status line */
async function showVerdict(page: Page, result: Identified): Promise<string> {
  const { response } = result;
  const token = response.transparencyToken;
  page.result.replaceChildren(verdictOf(response));
  if (token === undefined) return response.visitorId === null ? clockNote(result) : WORDS.noToken;
  const reply = await postForm(page, new URLSearchParams({ token }));
  // The token is new, so only the cookie that it is bound to can be missing.
  if (reply.status === 401) return WORDS.noCookie;
  if (!reply.ok) throw new Error(String(reply.status));
  await showReply(page, reply);
  const typedNote = fillTyped(page) ? WORDS.typedKept : '';
  const lookUpNote = response.needsAttestation ? WORDS.lookUpAlone : '';
  return [typedNote, lookUpNote, clockNote(result)].filter((text) => text !== '').join(' ');
}

/** Shows why there is no verdict, and what the person can still do. */
async function showRefusal(page: Page, text: string): Promise<void> {
  showStatus(page, text);
  const ways = await loadWaysLeft(page);
  if (ways) page.result.append(ways);
}

async function lookUp(page: Page): Promise<void> {
  showStatus(page, WORDS.looking);
  keepTyped(page);
  page.result.replaceChildren();
  const result = await identifyFrom(import.meta.url, {
    kid: page.kid,
    endpoint: page.endpoint,
    consent: currentReceipt,
  });
  if (!result.sent || result.response.reason !== 'ok') {
    await showRefusal(page, problemOf(result));
    return;
  }
  try {
    showStatus(page, await showVerdict(page, result));
  } catch {
    showStatus(page, WORDS.noDetails);
  }
}

/** Takes the token of a visit from the link's fragment, and removes it from address and history at once. */
function takeVisitToken(): string | null {
  const [, token] = /^#visit=([\w-]+)$/.exec(location.hash) ?? [];
  if (token === undefined) return null;
  history.replaceState(history.state, '', location.pathname + location.search);
  return token;
}

/** Shows the visit of a token without a look-up. */
async function showVisit(page: Page, token: string): Promise<void> {
  showStatus(page, WORDS.looking);
  try {
    const reply = await postForm(page, new URLSearchParams({ token }));
    if (!reply.ok) throw new Error(String(reply.status));
    await showReply(page, reply);
    showStatus(page, WORDS.visit);
  } catch {
    await showRefusal(page, WORDS.visitOver);
  }
}

function buildPage(host: HTMLElement): void {
  const kid = host.dataset['kid'];
  if (kid === undefined) return;
  const endpoint = endpointOf(host.dataset['endpoint'], import.meta.url);
  const button = el('button', { type: 'button', 'data-testid': 'look' }, WORDS.look) as HTMLButtonElement;
  const status = el('p', { role: 'status', 'data-testid': 'status' });
  const result = el('div', { class: 'stack' });
  const page: Page = { kid, endpoint, button, status, result, typed: null };
  button.onclick = () => {
    button.disabled = true;
    void lookUp(page).finally(() => {
      button.disabled = false;
    });
  };
  const consents = el('section', { 'data-testid': 'consents', hidden: '' });
  host.replaceChildren(
    el('p', {}, WORDS.intro),
    el('p', { class: 'quiet' }, WORDS.once),
    el('div', { class: 'buttons' }, button),
    status,
    result,
    consents,
  );
  const consent = pageConsent();
  const showText = (text: string): void => showStatus(page, text);
  void Promise.resolve(consent?.ready).then(() => {
    fillConsents(kid, consent, consents, showText);
    consents.after(...receiptButtons(page, showText));
  });
  const token = takeVisitToken();
  if (token !== null) void showVisit(page, token);
}

const SELECTOR = '[data-gpd-my-data]';
const started = new WeakSet<HTMLElement>();

/** Leaves a page unchanged that the server rendered after a form. */
async function startHost(host: HTMLElement): Promise<void> {
  if (started.has(host) || host.querySelector('[data-gpd-held]')) return;
  started.add(host);
  // React may be about to take over an empty element.
  if (host.firstElementChild === null) await untilHydrated(host);
  buildPage(host);
}

function startAll(): void {
  for (const host of document.querySelectorAll<HTMLElement>(SELECTOR)) void startHost(host);
}

// A framework may add the element later, or create it again.
new MutationObserver((records) => {
  const added = records.flatMap(({ addedNodes }) => [...addedNodes]);
  if (
    added.some((node) => node instanceof Element && (node.matches(SELECTOR) || node.querySelector(SELECTOR)))
  )
    startAll();
}).observe(document, { childList: true, subtree: true });
startAll();
