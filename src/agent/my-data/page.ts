import { WORDS } from './locales/en.ts';

/** The person's page: parts that the server writes, put in place of what is there, and the forms in them. */

/** A text in the form of an objection outlives the token of the look-up that it was typed under. */
type Typed = Readonly<Record<'statement' | 'email', string>>;

export interface Page {
  readonly kid: string;
  readonly endpoint: string;
  readonly button: HTMLButtonElement;
  readonly status: HTMLElement;
  readonly result: HTMLElement;
  /** Typed and not filed yet: a token lives for five minutes, and a person may need longer. */
  typed: Typed | null;
}

/** Elements by text alone. */
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

export function say(page: Page, text: string): void {
  page.status.textContent = text;
}

export function post(page: Page, form: URLSearchParams): Promise<Response> {
  return fetch(`${page.endpoint}/my-data`, {
    method: 'POST',
    credentials: 'include',
    headers: { accept: 'text/html' },
    body: form,
  });
}

const parsed = async (reply: Response): Promise<Document> =>
  new DOMParser().parseFromString(await reply.text(), 'text/html');

/** Links of the server lead to the server, on a page of the site's own too. */
function adopt<E extends HTMLElement>({ endpoint }: Page, part: E): E {
  for (const link of part.querySelectorAll<HTMLAnchorElement>('a[href^="/"]'))
    link.href = endpoint + link.getAttribute('href');
  return document.adoptNode(part);
}

/** The server's own words, in place of what is there. @returns its summary */
export async function put(page: Page, reply: Response): Promise<string> {
  const answer = await parsed(reply);
  const summary = answer.querySelector<HTMLElement>('[data-gpd-held]');
  if (!summary) throw new Error('no page');
  summary.querySelector(':scope > [role="status"]')?.remove();
  page.result.replaceChildren(adopt(page, summary));
  for (const form of summary.querySelectorAll('form')) {
    form.action = `${page.endpoint}/my-data`;
    form.addEventListener('submit', (event) => {
      const pressed = event.submitter as HTMLButtonElement | null;
      // The browser itself saves a file.
      if (!pressed || pressed.dataset['plain'] !== undefined) return;
      event.preventDefault();
      void send(page, form, pressed);
    });
  }
  return summary.dataset['told'] ?? '';
}

/** Ways that need no check, with the site's contact, as the server's page names them; null where it cannot be read. */
export async function waysLeft(page: Page): Promise<HTMLElement | null> {
  try {
    const address = `${page.endpoint}/my-data?kid=${encodeURIComponent(page.kid)}`;
    const answer = await parsed(await fetch(address, { headers: { accept: 'text/html' } }));
    const ways = answer.querySelector<HTMLElement>('[data-gpd-ways]');
    return ways && adopt(page, ways);
  } catch {
    return null;
  }
}

async function refusalOf(reply: Response): Promise<string | null> {
  return (await parsed(reply)).querySelector('[data-error]')?.textContent ?? null;
}

/** Next to the button that was pressed, with the focus: the status line may be a screen away. */
function refuseAt(page: Page, pressed: HTMLButtonElement, text: string, isLate: boolean): void {
  const error = el(
    'div',
    { class: 'notice stack', tabindex: '-1', 'data-testid': 'refused' },
    el('p', {}, text),
  );
  if (isLate) {
    const again = el('button', { type: 'button' }, WORDS.lookAgain);
    again.onclick = () => page.button.click();
    error.append(el('div', { class: 'buttons' }, again));
  }
  pressed.closest('.buttons')?.before(error);
  error.focus();
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

/** Before the form is replaced. */
export function keepTyped(page: Page): void {
  const fields = fieldsIn(page);
  if (!fields) return;
  const typed = { statement: fields.statement.value, email: fields.email.value };
  page.typed = typed.statement === '' && typed.email === '' ? null : typed;
}

/** @returns whether there was a text, and a form for it */
export function fillTyped(page: Page): boolean {
  const fields = fieldsIn(page);
  if (!fields || page.typed === null) return false;
  fields.statement.value = page.typed.statement;
  fields.email.value = page.typed.email;
  const folded = fields.statement.closest('details');
  if (folded) folded.open = true;
  return true;
}

/** A form that changes something. A refusal is said next to its button, and the form stays. */
async function send(page: Page, form: HTMLFormElement, pressed: HTMLButtonElement): Promise<void> {
  pressed.disabled = true;
  form.querySelector('[data-testid="refused"]')?.remove();
  say(page, '');
  try {
    const fields = new URLSearchParams(new FormData(form) as unknown as Record<string, string>);
    fields.set(pressed.name, pressed.value);
    const reply = await post(page, fields);
    if (reply.ok) {
      if (pressed.value === 'contest') page.typed = null;
      else keepTyped(page);
      say(page, await put(page, reply));
      fillTyped(page);
      return;
    }
    const isLate = reply.status === 401;
    const text = isLate ? WORDS.notDone : ((await refusalOf(reply)) ?? WORDS.unconfirmed);
    refuseAt(page, pressed, text, isLate);
  } catch {
    refuseAt(page, pressed, WORDS.unconfirmed, false);
  } finally {
    pressed.disabled = false;
  }
}
