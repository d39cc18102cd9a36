import { type HttpRequest, headerText, pathOf } from '../http/request.ts';
import type { Clock } from '../lib/clock.ts';

/**
 * The time in which the demo writes its past. The clock of its server is then that of each visit, so it
 * answers only the requests that write them, and the page of the tour with its files. All others wait until
 * the clock is right.
 */

/** The demo's requests have it, with a value that nobody else knows. */
const HEADER = 'gpd-demo';
/** The page of the tour and what it loads do not depend on the time. */
const TIMELESS = /^\/(?:demo)?$|^\/assets\/|\.js$/;

export type Filling = ReturnType<typeof createFilling>;

/** @param first the time before all visits */
export function createFilling(first: number, secret: string, present: Clock) {
  let visitTime: number | null = first;
  let finish = (): void => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  return {
    headers: { [HEADER]: secret },
    clock: () => visitTime ?? present(),
    /** Resolves when the server may answer this request. */
    async admit({ method, target, headers }: HttpRequest): Promise<void> {
      const isTimeless = (method === 'GET' || method === 'HEAD') && TIMELESS.test(pathOf(target));
      if (visitTime !== null && !isTimeless && headerText(headers, HEADER) !== secret) await finished;
    },
    goTo(at: number) {
      visitTime = at;
    },
    finish() {
      visitTime = null;
      finish();
    },
  };
}
