import type { ConsentReceipt } from '../types.ts';
import { WORDS } from './locales/en.ts';
import { el } from './page.ts';

/**
 * Lists the person's choices in this browser, from the banner's record at the site's origin, with buttons to
 * withdraw.
 */

/** The part of the banner's API that this page uses. */
export interface PageConsent {
  readonly ready?: Promise<unknown>;
  receipt?(): Promise<ConsentReceipt | null>;
  state?(): {
    readonly phase: string;
    readonly purposes: readonly { readonly id: string; readonly title: string }[];
  };
  withdraw?(purpose: string): Promise<{ readonly outcome: string }>;
}

interface Choice {
  readonly choice: keyof typeof WORDS.choices;
  readonly at: number;
  readonly until: number;
}

/** Reads the banner's record. @returns an empty list if it cannot be read */
function readChoices(kid: string): (readonly [purpose: string, choice: Choice])[] {
  try {
    const record = JSON.parse(localStorage.getItem(`gpd-consent:${kid}`) ?? '{}') as {
      readonly choices?: Readonly<Record<string, Choice>>;
    };
    return Object.entries(record.choices ?? {}).filter(([, { choice }]) => choice in WORDS.choices);
  } catch {
    return [];
  }
}

const formatDay = (at: number): string => new Intl.DateTimeFormat('en-GB', { dateStyle: 'long' }).format(at);

export function fillConsents(
  kid: string,
  banner: PageConsent | undefined,
  into: HTMLElement,
  showStatus: (text: string) => void,
): void {
  const titles = new Map(banner?.state?.().purposes.map(({ id, title }) => [id, title]));
  const rows = readChoices(kid).map(([id, { choice, at, until }]) => {
    const words = WORDS.choices[choice](formatDay(at), formatDay(until));
    const row = el('li', {}, el('strong', {}, titles.get(id) ?? id), ' ', words);
    if (choice === 'granted' && banner?.withdraw) {
      const button = el('button', { type: 'button', 'data-testid': 'withdraw' }, WORDS.withdraw);
      button.onclick = async () => {
        const { outcome } = (await banner.withdraw?.(id)) ?? { outcome: 'failed' };
        fillConsents(kid, banner, into, showStatus);
        showStatus(outcome === 'failed' ? WORDS.notWithdrawn : WORDS.withdrawn);
      };
      row.append(el('div', { class: 'buttons' }, button));
    }
    return row;
  });
  const list = rows.length > 0 ? el('ul', { class: 'consents' }, ...rows) : el('p', {}, WORDS.noConsents);
  into.replaceChildren(el('h2', {}, WORDS.consentsTitle), list);
  into.hidden = false;
}
