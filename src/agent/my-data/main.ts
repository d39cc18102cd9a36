import { browserGpc, untilHydrated } from '../../browser/page.ts';
import { PURPOSE } from '../consent-gate.ts';
import { identifyFrom } from '../identify.ts';
import { endpointOf } from '../server.ts';
import type { ConsentReceipt, Identified, IdentifyResult, IngestResponse } from '../types.ts';
import { fillConsents, type PageConsent } from './consents.ts';
import { WORDS } from './locales/en.ts';
import { el, fillTyped, keepTyped, type Page, post, put, say, waysLeft } from './page.ts';

/**
 * `<div data-gpd-my-data data-kid="KID"></div>` becomes a page about what is held. It uses what every browser may use:
 * one verdict per view, and the transparency token that came with it. The server writes the page, as it
 * does for a browser without scripts; here it is put in place.
 */

const banner = (): PageConsent | undefined =>
  (globalThis as { gpd?: { consent?: PageConsent } }).gpd?.consent;

/** The person's agreement of this moment; the banner's own record where there is one, for a tenant that wants proof. */
async function receipt(): Promise<ConsentReceipt> {
  // Without a choice the banner's receipt waits for one, and the button is the choice.
  const asks = banner()?.state?.().phase === 'asking';
  const recorded = asks
    ? null
    : await banner()
        ?.receipt?.()
        .catch(() => null);
  if (recorded?.purposes.includes(PURPOSE) === true) return recorded;
  return { purposes: [PURPOSE], gpc: browserGpc(), version: 0, issuedAt: Date.now() };
}

function problemOf(result: IdentifyResult): string {
  if (result.sent) {
    const { reason, consentState } = result.response;
    if (reason !== 'consent-missing') return `${WORDS.refused} ${clockNote(result)}`.trim();
    // The signal may have come as a header alone.
    return consentState.gpc ? WORDS.gpc : WORDS.unproven;
  }
  return result.reason === 'gpc' ? WORDS.gpc : WORDS.away;
}

/** Empty where the clock is right. */
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

/** All there is to show where the server cannot be asked for more. */
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

/** @returns what there is to say about it */
async function show(page: Page, result: Identified): Promise<string> {
  const { response } = result;
  const token = response.transparencyToken;
  page.result.replaceChildren(verdictOf(response));
  if (token === undefined) return response.visitorId === null ? clockNote(result) : WORDS.noToken;
  const reply = await post(page, new URLSearchParams({ token }));
  // The token is of this moment: only the cookie that it is bound to can be missing.
  if (reply.status === 401) return WORDS.noCookie;
  if (!reply.ok) throw new Error(String(reply.status));
  await put(page, reply);
  const typedNote = fillTyped(page) ? WORDS.typedKept : '';
  const lookUpNote = response.needsAttestation ? WORDS.lookUpAlone : '';
  return [typedNote, lookUpNote, clockNote(result)].filter((text) => text !== '').join(' ');
}

/** Nothing can be shown: the page names what is left to do. */
async function refuse(page: Page, text: string): Promise<void> {
  say(page, text);
  const ways = await waysLeft(page);
  if (ways) page.result.append(ways);
}

async function look(page: Page): Promise<void> {
  say(page, WORDS.looking);
  keepTyped(page);
  page.result.replaceChildren();
  const result = await identifyFrom(import.meta.url, {
    kid: page.kid,
    endpoint: page.endpoint,
    consent: receipt,
  });
  if (!result.sent || result.response.reason !== 'ok') {
    await refuse(page, problemOf(result));
    return;
  }
  try {
    say(page, await show(page, result));
  } catch {
    say(page, WORDS.noDetails);
  }
}

/** The token of a visit, which a link carries behind the #. It leaves the address and the history at once. */
function handedOver(): string | null {
  const [, token] = /^#visit=([\w-]+)$/.exec(location.hash) ?? [];
  if (token === undefined) return null;
  history.replaceState(history.state, '', location.pathname + location.search);
  return token;
}

/** That visit, without one more look-up. */
async function showVisit(page: Page, token: string): Promise<void> {
  say(page, WORDS.looking);
  try {
    const reply = await post(page, new URLSearchParams({ token }));
    if (!reply.ok) throw new Error(String(reply.status));
    await put(page, reply);
    say(page, WORDS.visit);
  } catch {
    await refuse(page, WORDS.visitOver);
  }
}

function build(host: HTMLElement): void {
  const kid = host.dataset['kid'];
  if (kid === undefined) return;
  const endpoint = endpointOf(host.dataset['endpoint'], import.meta.url);
  const button = el('button', { type: 'button', 'data-testid': 'look' }, WORDS.look) as HTMLButtonElement;
  const status = el('p', { role: 'status', 'data-testid': 'status' });
  const result = el('div', { class: 'stack' });
  const page: Page = { kid, endpoint, button, status, result, typed: null };
  button.onclick = () => {
    button.disabled = true;
    void look(page).finally(() => {
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
  const pageConsent = banner();
  const tell = (text: string): void => say(page, text);
  void Promise.resolve(pageConsent?.ready).then(() => fillConsents(kid, pageConsent, consents, tell));
  const token = handedOver();
  if (token !== null) void showVisit(page, token);
}

const SELECTOR = '[data-gpd-my-data]';
const met = new WeakSet<HTMLElement>();

/** A page that the server wrote after a form stays as it is. */
async function start(host: HTMLElement): Promise<void> {
  if (met.has(host) || host.querySelector('[data-gpd-held]')) return;
  met.add(host);
  // An empty element may be one that React is about to take over.
  if (host.firstElementChild === null) await untilHydrated(host);
  build(host);
}

function startAll(): void {
  for (const host of document.querySelectorAll<HTMLElement>(SELECTOR)) void start(host);
}

/** A framework may add the element later, or create it again. */
new MutationObserver((records) => {
  const added = records.flatMap(({ addedNodes }) => [...addedNodes]);
  if (
    added.some((node) => node instanceof Element && (node.matches(SELECTOR) || node.querySelector(SELECTOR)))
  )
    startAll();
}).observe(document, { childList: true, subtree: true });
startAll();
