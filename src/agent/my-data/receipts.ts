import { readRecord } from './consents.ts';
import { el, type Page } from './page.ts';

/** Fetches the receipts of this browser's choices: as a page to print, and as a file for programs. */

type Credentials = Readonly<Record<'principalId' | 'principalSecret', string>>;

async function fetchReceipts(endpoint: string, key: string, person: Credentials, type: string) {
  const response = await fetch(`${endpoint}/v1/consent/receipts`, {
    method: 'POST',
    headers: { accept: type, authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(person),
  });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.blob();
}

/** A link is followed, because a window that opens after a wait is blocked. */
function saveAs(blob: Blob, name: string): void {
  const link = el('a', { href: URL.createObjectURL(blob), download: name }) as HTMLAnchorElement;
  link.click();
}

const FILES = [
  ['text/html', 'receipts.html', 'receiptPage'],
  ['application/ld+json', 'receipts.jsonld', 'receiptFile'],
] as const;

/** Empty where this page has no key of the banner, or the browser no record. */
export function receiptButtons(
  { kid, endpoint, words }: Pick<Page, 'kid' | 'endpoint' | 'words'>,
  showText: (text: string) => void,
): readonly HTMLElement[] {
  const key = document.querySelector<HTMLElement>('script[data-key]')?.dataset['key'];
  const { principalId, secret: principalSecret } = readRecord(kid);
  if (!key || !principalId || !principalSecret) return [];
  const person = { principalId, principalSecret };
  const buttons = FILES.map(([type, name, word]) => {
    const button = el('button', { type: 'button', 'data-testid': name }, words.texts[word]);
    button.onclick = () => {
      fetchReceipts(endpoint, key, person, type).then(
        (blob) => saveAs(blob, name),
        () => showText(words.texts.away),
      );
    };
    return button;
  });
  return [el('div', { class: 'buttons', 'data-testid': 'receipts' }, ...buttons)];
}
