import type { words } from '../locales/en.ts';

/** The banner's texts in one language; {date}, {purposes} and {seq} are filled in. */
export type Words = Readonly<Record<keyof typeof words, string>>;
