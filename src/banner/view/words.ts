import type { Config } from '../config.ts';
import { words as english, type Words } from '../locales/en.ts';

/** The banner's words in the language of the terms. Words that a server of another version lacks stay English. */
export const wordsOf = ({ words }: Pick<Config, 'words'>): Words => ({ ...english, ...words });
