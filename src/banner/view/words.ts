import type { words } from '../locales/en.ts';

/** What the banner says in one language; {date}, {purposes} and {seq} are filled in. */
export type Words = Readonly<Record<keyof typeof words, string>>;
