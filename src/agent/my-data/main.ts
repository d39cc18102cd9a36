import { browserGpc, untilHydrated } from '../../browser/page.ts';
import { fillWords } from '../../lib/people/words.ts';
import { PURPOSE } from '../consent-gate.ts';
import { identifyFrom } from '../identify.ts';
import { endpointOf } from '../server.ts';
import type { ConsentReceipt, Identified, IdentifyResult, IngestResponse } from '../types.ts';
import { fillConsents, type PageConsent } from './consents.ts';
import {
  arrange,
  el,
  fillTyped,
  focusAnswer,
  keepToken,
  keepTyped,
  loadWaysLeft,
  localiseTimes,
  type Page,
  postForm,
  showReply,
  showStatus,
} from './page.ts';
import { receiptButtons } from './receipts.ts';
import { loadWords, type Words } from './words.ts';

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

function problemOf(words: Words, result: IdentifyResult): string {
  const { texts } = words;
  if (result.sent) {
    const { reason, consentState } = result.response;
    if (reason !== 'consent-missing') return `${texts.refused} ${clockNote(words, result)}`.trim();
    // GPC may have come as a header alone.
    return consentState.gpc ? texts.gpc : texts.unproven;
  }
  return result.reason === 'gpc' ? texts.gpc : texts.away;
}

/** @returns an empty text if the clock is right */
function clockNote({ lang, texts }: Words, { clockAheadMs = 0 }: Identified): string {
  if (clockAheadMs === 0) return '';
  const minutes = Math.round(Math.abs(clockAheadMs) / 60_000);
  const [count, unit] =
    minutes < 120
      ? [minutes, 'minute']
      : minutes < 48 * 60
        ? [Math.round(minutes / 60), 'hour']
        : [Math.round(minutes / 1440), 'day'];
  const format = new Intl.NumberFormat(lang, { style: 'unit', unit, unitDisplay: 'long' });
  return fillWords(clockAheadMs > 0 ? texts.clockFast : texts.clockSlow, { duration: format.format(count) });
}

/** The verdict alone; it is all that can be shown without a transparency token. */
function verdictOf({ texts }: Words, { class: name, requestId, visitorId }: IngestResponse): HTMLElement {
  return el(
    'section',
    { 'data-testid': 'verdict' },
    el('h2', {}, texts.verdictTitle),
    el('p', { class: 'lead' }, texts[name]),
    ...(visitorId === null ? [el('p', {}, texts.nobody)] : []),
    el('p', { class: 'quiet' }, texts.request, ' ', el('code', {}, requestId)),
  );
}

/** @returns the text for the status line */
async function showVerdict(page: Page, result: Identified): Promise<string> {
  const { response } = result;
  const { texts } = page.words;
  const token = response.transparencyToken;
  page.result.replaceChildren(verdictOf(page.words, response));
  if (token === undefined) return response.visitorId === null ? clockNote(page.words, result) : texts.noToken;
  const reply = await postForm(page, new URLSearchParams({ token }));
  // The token is new, so only the cookie that it is bound to can be missing.
  if (reply.status === 401) return texts.noCookie;
  if (!reply.ok) throw new Error(String(reply.status));
  await showReply(page, reply);
  const typedNote = fillTyped(page) ? texts.typedKept : '';
  const lookUpNote = response.needsAttestation ? texts.lookUpAlone : '';
  return [typedNote, lookUpNote, clockNote(page.words, result)].filter((text) => text !== '').join(' ');
}

/** Shows why there is no verdict, and what the person can still do. */
async function showRefusal(page: Page, text: string): Promise<void> {
  arrange(page, false);
  showStatus(page, text);
  const ways = await loadWaysLeft(page);
  if (ways) page.result.append(ways);
}

async function lookUp(page: Page): Promise<void> {
  const { texts } = page.words;
  showStatus(page, texts.looking);
  keepTyped(page);
  page.result.replaceChildren();
  arrange(page, false);
  const result = await identifyFrom(import.meta.url, {
    kid: page.kid,
    endpoint: page.endpoint,
    consent: currentReceipt,
  });
  if (!result.sent || result.response.reason !== 'ok') {
    await showRefusal(page, problemOf(page.words, result));
    return;
  }
  try {
    showStatus(page, await showVerdict(page, result));
    focusAnswer(page);
  } catch {
    showStatus(page, texts.noDetails);
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
  const { texts } = page.words;
  showStatus(page, texts.looking);
  page.intro.hidden = true;
  keepToken(page, token);
  try {
    const reply = await postForm(page, new URLSearchParams({ token }));
    if (!reply.ok) throw new Error(String(reply.status));
    await showReply(page, reply);
    showStatus(page, texts.visit);
  } catch {
    await showRefusal(page, texts.visitOver);
  }
}

/** @returns the page with its parts, which are not in the document yet */
function createPage(host: HTMLElement, kid: string, endpoint: string, words: Words): Page {
  const { texts } = words;
  const title = host.querySelector('h1');
  const button = el(
    'button',
    { type: 'button', class: 'primary', 'data-testid': 'look' },
    texts.look,
  ) as HTMLButtonElement;
  return {
    ...{ kid, endpoint, words, host, button, typed: null },
    isWhole: title !== null,
    intro: el(
      'div',
      { class: 'stack' },
      ...(title ? [title] : []),
      el('p', {}, texts.intro),
      el('p', { class: 'quiet' }, texts.once),
    ),
    act: el('div', { class: 'buttons' }, button),
    status: el('p', { role: 'status', class: 'quiet small', 'data-testid': 'status' }),
    result: el('div', { class: 'stack' }),
    consents: el('details', { class: 'fold', 'data-testid': 'consents', hidden: '' }),
  };
}

async function buildPage(host: HTMLElement): Promise<void> {
  const kid = host.dataset['kid'];
  if (kid === undefined) return;
  const endpoint = endpointOf(host.dataset['endpoint'], import.meta.url);
  const token = takeVisitToken();
  const page = createPage(host, kid, endpoint, await loadWords(host, endpoint, kid));
  const { button, intro, act, status, result, consents, words } = page;
  button.onclick = () => {
    button.disabled = true;
    void lookUp(page).finally(() => {
      button.disabled = false;
    });
  };
  host.replaceChildren(intro, act, status, result, consents);
  const consent = pageConsent();
  const showText = (text: string): void => showStatus(page, text);
  void Promise.resolve(consent?.ready).then(() => {
    fillConsents(kid, words, consent, consents, showText);
    consents.append(...receiptButtons(page, showText));
  });
  if (token !== null) void showVisit(page, token);
}

const SELECTOR = '[data-gpd-my-data]';
const started = new WeakSet<HTMLElement>();

/** Leaves a page as it is that the server rendered after a form, but for its times. */
async function startHost(host: HTMLElement): Promise<void> {
  if (started.has(host)) return;
  started.add(host);
  if (host.querySelector('[data-gpd-held]')) {
    localiseTimes(host);
    return;
  }
  // React may be about to take over an empty element.
  if (host.firstElementChild === null) await untilHydrated(host);
  await buildPage(host);
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
