import { excerpt, visibleText } from '../lib/text.ts';

/** Cuts a statement into the headline of its case and the text below it. */

const MAX_TITLE = 120;
/** A sentence or a line ends a headline; Chinese and Japanese write no space after a full stop. */
const FIRST_SENTENCE = /^[^\n]*?(?:[.!?…](?=\s|$)|[。！？]|(?=\n)|$)/u;

/** @returns `rest`: the text that the title does not show; empty if it shows all */
export function splitStatement(statement: string): { readonly title: string; readonly rest: string } {
  const text = visibleText(statement).trim();
  const [sentence = ''] = FIRST_SENTENCE.exec(text) ?? [];
  if (sentence.length > MAX_TITLE) return { title: excerpt(text, MAX_TITLE), rest: text };
  return { title: sentence, rest: text.slice(sentence.length).trim() };
}
