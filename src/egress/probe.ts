import { SECOND } from '../lib/clock.ts';

/** Short questions to servers that the operator named, for `gpd doctor` and `gpd status`. */

const TIMEOUT_MS = 3 * SECOND;

/** Null: nobody answers there. Redirects are not followed. */
export async function probe(url: string) {
  try {
    const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) });
    const date = Date.parse(response.headers.get('date') ?? '');
    return {
      status: response.status,
      /** The answer's own time; null: it tells none. */
      date: Number.isNaN(date) ? null : date,
      text: await response.text(),
    };
  } catch {
    return null;
  }
}
