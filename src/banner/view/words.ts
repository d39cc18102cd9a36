import type { Config } from '../config.ts';
import { words as english, type Words } from '../locales/en.ts';

/** The banner's words in the language of the terms. Words that a server of another version lacks stay English. */
export function wordsOf({ words }: Pick<Config, 'words'>): Words {
  const merged: Record<string, string> = { ...english };
  for (const [name, text] of Object.entries(words ?? {}))
    if (Object.hasOwn(english, name) && typeof text === 'string') merged[name] = text;
  return merged as unknown as Words;
}
