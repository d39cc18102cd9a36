import type { QueueList } from '../rights/contests/record.ts';

/** Reads the words of a search in the queue. Statements are encrypted, so their words are not found. */

export interface SearchWords {
  readonly class?: string;
  readonly list?: QueueList;
  readonly isOverdue?: boolean;
  /** The words that name nothing else, as a part of the holder's name. */
  readonly holder?: string;
}

const CLASS_WORDS: Readonly<Record<string, string>> = {
  human: 'human',
  person: 'human',
  agent: 'declared_agent',
  declared: 'declared_agent',
  automated: 'undeclared_automation',
  automation: 'undeclared_automation',
  undeclared: 'undeclared_automation',
  unknown: 'unknown',
};
const LIST_WORDS: Readonly<Record<string, QueueList>> = {
  waiting: 'waiting',
  asked: 'asked',
  answered: 'answered',
  proposed: 'proposed',
};
const OVERDUE_WORDS = ['overdue', 'late'];

export function readWords(search: string): SearchWords {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const named = (table: object) => words.find((word) => Object.hasOwn(table, word)) ?? '';
  const isKnown = (word: string): boolean =>
    Object.hasOwn(CLASS_WORDS, word) || Object.hasOwn(LIST_WORDS, word) || OVERDUE_WORDS.includes(word);
  const className = CLASS_WORDS[named(CLASS_WORDS)];
  const list = LIST_WORDS[named(LIST_WORDS)];
  const holder = words.filter((word) => !isKnown(word)).join(' ');
  return {
    ...(className === undefined ? {} : { class: className }),
    ...(list === undefined ? {} : { list }),
    ...(words.some((word) => OVERDUE_WORDS.includes(word)) ? { isOverdue: true } : {}),
    ...(holder === '' ? {} : { holder }),
  };
}
