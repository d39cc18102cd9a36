import type { IncomingHttpHeaders } from 'node:http';
import { wordsOf } from '../../consent/purpose-words.ts';
import { RECEIPT_CONTEXT } from '../../consent/receipt-jsonld.ts';
import type { PersonReceipts } from '../../consent/receipts-service.ts';
import type { Reply } from '../../http/reply.ts';
import { type PeopleLanguage, preferredLanguage } from '../../lib/languages.ts';
import { ENGLISH } from '../../lib/people/say.ts';
import { formatWords, readWords } from '../../notify/mail-words-files.ts';
import { renderPage } from '../dsar/archive-page-files.ts';

/** Receipts for the person: one document for programs, and the same as a page that prints. */

function pageOf({ kid, controller, choices }: PersonReceipts, language: PeopleLanguage): Promise<string> {
  const words = readWords(`receipt/words.${language}.txt`);
  const format = new Intl.DateTimeFormat(language, {
    dateStyle: 'long',
    timeStyle: 'short',
    timeZone: 'UTC',
  });
  return renderPage('receipt/page', {
    language,
    kid,
    choices: choices.map((one) => ({
      ...one,
      purpose: { ...one.purpose, ...wordsOf(one.purpose, language) },
    })),
    title: formatWords(words, 'title'),
    controller: controller['notice.controller'].trim() || ENGLISH.say('notice.noController'),
    contact: controller['notice.contact'].trim() || ENGLISH.say('notice.noContact'),
    say: (key: string, values?: Readonly<Record<string, string | number>>) => formatWords(words, key, values),
    date: (at: number | string): string => `${format.format(new Date(at))} UTC`,
  });
}

/** The body is a person's: no cache may keep it. */
export async function receiptReply(found: PersonReceipts, headers: IncomingHttpHeaders): Promise<Reply> {
  const common = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };
  if (/\btext\/html\b/.test(headers.accept ?? '')) {
    const body = await pageOf(found, preferredLanguage(headers['accept-language'] ?? null));
    return { status: 200, headers: { ...common, 'content-type': 'text/html; charset=utf-8' }, body };
  }
  const body = JSON.stringify({ '@context': RECEIPT_CONTEXT, '@graph': found.receipts });
  return { status: 200, headers: { ...common, 'content-type': 'application/ld+json' }, body };
}
