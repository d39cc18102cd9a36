import type { Config } from '../config.ts';
import { words as english, type Words } from '../locales/en.ts';

/** The words in the language of the terms. A word that a server of another version lacks stays English. */
export const wordsOf = ({ words }: Pick<Config, 'words'>): Words => ({ ...english, ...words });
