import type { Book } from './load.ts';

/** Refusals that are no clear 503 with Retry-After, with how often each was told; a fault may show nothing else. */
export function refusalsOf(book: Book): Readonly<Record<string, number>> {
  const unclear = new Map<string, number>();
  for (const { status, headers, text } of book.refusals) {
    const refusal = `${status} ${headers['retry-after'] ?? 'without Retry-After'} ${text.slice(0, 60)}`;
    if (!/^503 \d+ \{"error":"unavailable"/.test(refusal))
      unclear.set(refusal, (unclear.get(refusal) ?? 0) + 1);
  }
  return Object.fromEntries(unclear);
}
