import { browserGpc, PURPOSE } from '../gate.ts';
import { identifyFrom } from '../identify.ts';
import type { ConsentReceipt, Identified, IdentifyResult } from '../types.ts';
import { el } from './dom.ts';
import { type View, verdictOf, viewOf } from './render.ts';
import { WORDS } from './words.ts';

/**
 * `<div data-gpd-my-data data-kid="KID"></div>` becomes a page about what is held. It uses what every browser may use:
 * a verdict of its own, and the transparency token that came with it.
 */

interface Page {
  readonly kid: string;
  readonly endpoint: string;
  readonly status: HTMLElement;
  readonly result: HTMLElement;
  readonly forget: HTMLButtonElement;
}

interface BannerApi {
  readonly consent?: { receipt?: () => Promise<ConsentReceipt | null> };
}

/** The person's agreement of this moment; the banner's own record where there is one, for a tenant that wants proof. */
async function receipt(): Promise<ConsentReceipt> {
  const banner = (globalThis as { gpd?: BannerApi }).gpd?.consent;
  const recorded = await banner?.receipt?.().catch(() => null);
  if (recorded?.purposes.includes(PURPOSE) === true) return recorded;
  return { purposes: [PURPOSE], gpc: browserGpc(), version: 0, issuedAt: Date.now() };
}

async function me(page: Page, token: string, action: 'view' | 'forget'): Promise<Response> {
  return fetch(`${page.endpoint}/me`, {
    method: 'POST',
    credentials: 'include',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token, action }),
  });
}

function say(page: Page, text: string): void {
  page.status.textContent = text;
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

/** The view, or null where no details are kept. @throws when the server did not say which */
async function viewFrom(reply: Response): Promise<View | null> {
  if (reply.ok) return (await reply.json()) as View;
  if (reply.status === 404) return null;
  throw new Error(String(reply.status));
}

/** @returns what there is to say about it */
async function show(page: Page, result: Identified): Promise<string> {
  const { response } = result;
  const token = response.transparencyToken;
  page.result.replaceChildren(verdictOf(response));
  if (token === undefined) return WORDS.noToken;
  const reply = await me(page, token, 'view');
  // The token is of this moment: only the cookie that it is bound to can be missing.
  if (reply.status === 401) return WORDS.noCookie;
  page.forget.hidden = false;
  page.forget.onclick = () => void forget(page, token);
  const view = await viewFrom(reply);
  if (response.visitorId !== null) page.result.append(viewOf(view));
  return clockNote(result);
}

async function forget(page: Page, token: string): Promise<void> {
  page.forget.disabled = true;
  try {
    const { ok, status } = await me(page, token, 'forget');
    say(page, ok ? WORDS.gone : status === 401 ? WORDS.notGone : WORDS.unconfirmed);
    if (ok) page.result.replaceChildren();
    page.forget.hidden = ok || status === 401;
  } catch {
    say(page, WORDS.unconfirmed);
  } finally {
    page.forget.disabled = false;
  }
}

async function look(page: Page): Promise<void> {
  say(page, WORDS.looking);
  page.result.replaceChildren();
  page.forget.hidden = true;
  const result = await identifyFrom(import.meta.url, {
    kid: page.kid,
    endpoint: page.endpoint,
    consent: receipt,
  });
  if (!result.sent || result.response.reason !== 'ok') {
    say(page, problemOf(result));
    return;
  }
  try {
    say(page, await show(page, result));
  } catch {
    say(page, WORDS.noDetails);
  }
}

function build(host: HTMLElement): void {
  const kid = host.dataset['kid'];
  if (kid === undefined) return;
  const endpoint = (host.dataset['endpoint'] ?? new URL(import.meta.url).origin).replace(/\/+$/, '');
  const button = el('button', { type: 'button', 'data-testid': 'look' }, WORDS.look) as HTMLButtonElement;
  const forgetButton = el('button', { type: 'button', hidden: '', 'data-testid': 'forget' }, WORDS.forget);
  const status = el('p', { role: 'status', 'data-testid': 'status' });
  const result = el('div', { class: 'stack' });
  const page: Page = { kid, endpoint, status, result, forget: forgetButton as HTMLButtonElement };
  button.onclick = () => {
    button.disabled = true;
    void look(page).finally(() => {
      button.disabled = false;
    });
  };
  host.replaceChildren(
    el('p', {}, WORDS.intro),
    el('p', { class: 'quiet' }, WORDS.once),
    el('div', { class: 'buttons' }, button, forgetButton),
    status,
    result,
  );
}

for (const host of document.querySelectorAll<HTMLElement>('[data-gpd-my-data]')) build(host);
