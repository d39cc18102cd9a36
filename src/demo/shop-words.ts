import type { PeopleLanguage } from '../lib/languages.ts';
import de from './words/de.json' with { type: 'json' };
import en from './words/en.json' with { type: 'json' };
import es from './words/es.json' with { type: 'json' };
import fr from './words/fr.json' with { type: 'json' };
import italian from './words/it.json' with { type: 'json' };
import pl from './words/pl.json' with { type: 'json' };

/** The texts of the shop: `page` as the server renders it, `script` as its script says them. */

type ShopWords = typeof en;

export const SHOP_WORDS: Readonly<Record<PeopleLanguage, ShopWords>> = {
  ...{ en, de, fr, es, pl },
  it: italian,
};

/** @throws {Error} for a key that the page does not have, because templates are not typed */
export function shopText(language: PeopleLanguage, key: string): string {
  const text = new Map(Object.entries(SHOP_WORDS[language].page)).get(key);
  if (text === undefined) throw new Error(`no text ${key}`);
  return text;
}

export interface Ware {
  readonly id: 'aurora' | 'kiel' | 'faro';
  readonly name: string;
  /** In euros. */
  readonly price: number;
}

export const WARES: readonly Ware[] = [
  { id: 'aurora', name: 'Aurora', price: 89 },
  { id: 'kiel', name: 'Kiel', price: 64 },
  { id: 'faro', name: 'Faro', price: 49 },
];
