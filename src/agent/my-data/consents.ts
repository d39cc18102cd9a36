import { fillWords } from '../../lib/people/words.ts';
import type { ConsentReceipt } from '../types.ts';
import { el } from './page.ts';
import type { Words } from './words.ts';

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

const CHOICES = ['granted', 'denied', 'withdrawn'] as const;

interface Choice {
  readonly choice: (typeof CHOICES)[number];
  readonly at: number;
  readonly until: number;
}

/** The banner's record at this origin. */
interface BannerRecord {
  readonly principalId?: string;
  readonly secret?: string;
  readonly choices?: Readonly<Record<string, Choice>>;
}

/** @returns an empty record if it cannot be read */
export function readRecord(kid: string): BannerRecord {
  try {
    return JSON.parse(localStorage.getItem(`gpd-consent:${kid}`) ?? '{}') as BannerRecord;
  } catch {
    return {};
  }
}

const readChoices = (kid: string) =>
  Object.entries(readRecord(kid).choices ?? {}).filter(([, { choice }]) => CHOICES.includes(choice));

/** Fills the fold with the choices; it is open where one can be withdrawn. */
export function fillConsents(
  kid: string,
  words: Words,
  banner: PageConsent | undefined,
  into: HTMLElement,
  showStatus: (text: string) => void,
): void {
  const { lang, texts } = words;
  const day = new Intl.DateTimeFormat(lang === 'en' ? 'en-GB' : lang, { dateStyle: 'long' });
  const titles = new Map(banner?.state?.().purposes.map(({ id, title }) => [id, title]));
  const rows = readChoices(kid).map(([id, { choice, at, until }]) => {
    const text = fillWords(texts[choice], { at: day.format(at), until: day.format(until) });
    const row = el('li', {}, el('strong', {}, titles.get(id) ?? id), ' ', text);
    if (choice === 'granted' && banner?.withdraw) {
      const button = el('button', { type: 'button', 'data-testid': 'withdraw' }, texts.withdraw);
      button.onclick = async () => {
        const { outcome } = (await banner.withdraw?.(id)) ?? { outcome: 'failed' };
        fillConsents(kid, words, banner, into, showStatus);
        showStatus(outcome === 'failed' ? texts.notWithdrawn : texts.withdrawnNow);
      };
      row.append(el('div', { class: 'buttons' }, button));
      into.setAttribute('open', '');
    }
    return row;
  });
  const list = rows.length > 0 ? el('ul', { class: 'consents' }, ...rows) : el('p', {}, texts.noConsents);
  into.replaceChildren(el('summary', {}, texts.consentsTitle), list, ...[...into.children].slice(2));
  into.hidden = false;
}
