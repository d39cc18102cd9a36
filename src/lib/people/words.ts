import type { PAGE, SCRIPT } from './en.ts';

/** The shape of a language's texts: a missing key, or one that English lacks, is an error of types. */

export type PageKey = keyof typeof PAGE;
export type PageWords = Readonly<Record<PageKey, string>>;
export type ScriptWords = Readonly<Record<keyof typeof SCRIPT, string>>;

type Values = Readonly<Record<string, string | number>>;

const PLACE = /\{(\w+)\}/g;

/** Fills `{name}` with these values. */
export const fillWords = (text: string, values: Values = {}): string =>
  text.replace(PLACE, (place, name: string) => String(values[name] ?? place));

/** A piece of a text: words, or the name of what a template puts there as an element, such as a time. */
export type Piece = { readonly text: string } | { readonly place: string };

/** Cuts a text at its places, for values that are markup: no template takes markup as a value. */
export const piecesOf = (text: string): readonly Piece[] =>
  text
    .split(/(\{\w+\})/)
    .filter((part) => part !== '')
    .map((part) => (part.startsWith('{') ? { place: part.slice(1, -1) } : { text: part }));
