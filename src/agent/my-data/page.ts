import type { Words } from './words.ts';

/** The page about a person's data: inserts the parts that the server renders, and sends the forms in them. */

/** The text in the form of an objection is kept when the look-up's token has expired. */
type Typed = Readonly<Record<'statement' | 'email', string>>;

export interface Page {
  readonly kid: string;
  readonly endpoint: string;
  readonly words: Words;
  readonly host: HTMLElement;
  /** The text before the first look-up. */
  readonly intro: HTMLElement;
  /** The row of the button. */
  readonly act: HTMLElement;
  readonly consents: HTMLElement;
  /** True on gpd's own page, which has a heading and a switch of languages. */
  readonly isWhole: boolean;
  readonly button: HTMLButtonElement;
  readonly status: HTMLElement;
  readonly result: HTMLElement;
  /** Text that is not filed yet: a token is valid for five minutes, and a person may need longer. */
  typed: Typed | null;
}

/** Creates an element without markup in strings. */
export function el(
  name: string,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly (Node | string)[]
): HTMLElement {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

export function showStatus(page: Page, text: string): void {
  page.status.textContent = text;
}

/** An answer replaces the introduction, and the button to look again comes after it. */
export function arrange({ host, intro, act, button, consents, result }: Page, isAnswered: boolean): void {
  intro.hidden = isAnswered;
  button.classList.toggle('primary', !isAnswered);
  const erase = result.querySelector('[data-testid="forget"]');
  if (erase) erase.before(consents);
  else host.append(consents);
  if (isAnswered) host.append(act);
  else intro.after(act);
}

/** The links of the switch carry the token, so that the other language shows the same visit. */
export function keepToken({ isWhole }: Page, token: string | undefined): void {
  if (!isWhole || token === undefined) return;
  for (const link of document.querySelectorAll<HTMLAnchorElement>('.languages a[hreflang]'))
    link.hash = `visit=${token}`;
}

const TIME_STYLES: Readonly<Record<string, Intl.DateTimeFormatOptions>> = {
  day: { dateStyle: 'long' },
  clock: { timeStyle: 'short' },
  moment: { dateStyle: 'long', timeStyle: 'short' },
};

/** The server writes times in UTC, because it does not know the time zone of the browser. */
export function localiseTimes(root: HTMLElement): void {
  const lang = root.closest<HTMLElement>('[lang]')?.lang;
  for (const time of root.querySelectorAll<HTMLTimeElement>('time[data-style]')) {
    const style = TIME_STYLES[time.dataset['style'] ?? ''];
    const format = new Intl.DateTimeFormat(lang === 'en' ? 'en-GB' : lang, style);
    time.textContent = format.format(new Date(time.dateTime));
  }
}

const addressOf = ({ endpoint, words }: Page): string => `${endpoint}/my-data${words.query}`;

export function postForm(page: Page, form: URLSearchParams): Promise<Response> {
  return fetch(addressOf(page), {
    method: 'POST',
    credentials: 'include',
    headers: { accept: 'text/html' },
    body: form,
  });
}

const parseReply = async (reply: Response): Promise<Document> =>
  new DOMParser().parseFromString(await reply.text(), 'text/html');

/** A site's own page has a first heading already. */
function demote(heading: HTMLElement): void {
  const attributes = [...heading.attributes].map(({ name, value }) => [name, value] as const);
  heading.replaceWith(el('h2', Object.fromEntries(attributes), ...heading.childNodes));
}

/** Makes links of the server absolute: the page may be at the site's origin. */
function adopt<E extends HTMLElement>({ endpoint, isWhole }: Page, part: E): E {
  localiseTimes(part);
  if (!isWhole) for (const heading of part.querySelectorAll('h1')) demote(heading);
  for (const link of part.querySelectorAll<HTMLAnchorElement>('a[href^="/"]'))
    link.href = endpoint + link.getAttribute('href');
  return document.adoptNode(part);
}

/** Replaces the result by the server's answer. @returns the answer's one-line summary */
export async function showReply(page: Page, reply: Response): Promise<string> {
  const answer = await parseReply(reply);
  const summary = answer.querySelector<HTMLElement>('[data-gpd-held]');
  if (!summary) throw new Error('no page');
  summary.querySelector(':scope > [role="status"]')?.remove();
  page.result.replaceChildren(adopt(page, summary));
  arrange(page, true);
  keepToken(page, summary.querySelector<HTMLInputElement>('input[name="token"]')?.value);
  for (const form of summary.querySelectorAll('form')) {
    form.action = addressOf(page);
    form.addEventListener('submit', (event) => {
      const pressed = event.submitter as HTMLButtonElement | null;
      // A form that downloads a file is left to the browser.
      if (!pressed || pressed.dataset['plain'] !== undefined) return;
      event.preventDefault();
      void sendForm(page, form, pressed);
    });
  }
  return summary.dataset['told'] ?? '';
}

/**
 * Loads the server's list of ways that need no look-up, with the site's contact.
 * @returns null if it cannot be read
 */
export async function loadWaysLeft(page: Page): Promise<HTMLElement | null> {
  try {
    const address = new URL(addressOf(page));
    address.searchParams.set('kid', page.kid);
    const answer = await parseReply(await fetch(address, { headers: { accept: 'text/html' } }));
    const ways = answer.querySelector<HTMLElement>('[data-gpd-ways]');
    return ways && adopt(page, ways);
  } catch {
    return null;
  }
}

async function refusalOf(reply: Response): Promise<string | null> {
  return (await parseReply(reply)).querySelector('[data-error]')?.textContent ?? null;
}

/** Shows a refusal next to the pressed button, with the focus: the status line may be out of sight. */
function showRefusalAt(page: Page, pressed: HTMLButtonElement, text: string, isLate: boolean): void {
  const error = el(
    'div',
    { class: 'notice stack', tabindex: '-1', 'data-testid': 'refused' },
    el('p', {}, text),
  );
  if (isLate) {
    const again = el('button', { type: 'button' }, page.words.texts.lookAgain);
    again.onclick = () => page.button.click();
    error.append(el('div', { class: 'buttons' }, again));
  }
  pressed.closest('.buttons')?.before(error);
  error.focus();
}

/** The pressed button is gone, and with it the focus. */
export function focusAnswer({ result }: Page): void {
  result.querySelector<HTMLElement>('h1[tabindex], h2[tabindex]')?.focus();
}

interface Fields {
  readonly statement: HTMLTextAreaElement;
  readonly email: HTMLInputElement;
}

function fieldsIn({ result }: Page): Fields | null {
  const statement = result.querySelector<HTMLTextAreaElement>('textarea[name="statement"]');
  const email = result.querySelector<HTMLInputElement>('input[name="email"]');
  return statement && email && { statement, email };
}

/** Keeps the typed text before the form is replaced. */
export function keepTyped(page: Page): void {
  const fields = fieldsIn(page);
  if (!fields) return;
  const typed = { statement: fields.statement.value, email: fields.email.value };
  page.typed = typed.statement === '' && typed.email === '' ? null : typed;
}

/** @returns true if there was a text and a form for it */
export function fillTyped(page: Page): boolean {
  const fields = fieldsIn(page);
  if (!fields || page.typed === null) return false;
  fields.statement.value = page.typed.statement;
  fields.email.value = page.typed.email;
  const folded = fields.statement.closest('details');
  if (folded) folded.open = true;
  return true;
}

/** Sends a form that changes something. A refusal is shown next to its button, and the form stays. */
async function sendForm(page: Page, form: HTMLFormElement, pressed: HTMLButtonElement): Promise<void> {
  const { texts } = page.words;
  pressed.disabled = true;
  form.querySelector('[data-testid="refused"]')?.remove();
  showStatus(page, '');
  try {
    const fields = new URLSearchParams(new FormData(form) as unknown as Record<string, string>);
    fields.set(pressed.name, pressed.value);
    const reply = await postForm(page, fields);
    if (reply.ok) {
      if (['contest', 'complain'].includes(pressed.value)) page.typed = null;
      else keepTyped(page);
      showStatus(page, await showReply(page, reply));
      fillTyped(page);
      focusAnswer(page);
      return;
    }
    const isLate = reply.status === 401;
    const text = isLate ? texts.notDone : ((await refusalOf(reply)) ?? texts.unconfirmed);
    showRefusalAt(page, pressed, text, isLate);
  } catch {
    showRefusalAt(page, pressed, texts.unconfirmed, false);
  } finally {
    pressed.disabled = false;
  }
}
