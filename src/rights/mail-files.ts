import { readFileSync } from 'node:fs';

/** The words of mails, a line each: `contest.asked  A question waits …`. */
const LINES = readFileSync(new URL('../../views/mail.en.txt', import.meta.url), 'utf8').trim();

export const MAIL_WORDS: ReadonlyMap<string, string> = new Map(
  LINES.split('\n').map((line) => line.split('  ', 2) as [key: string, text: string]),
);
