import type { Verdict } from '../ingest/verdict.ts';
import type { Database } from './db.ts';

export interface StoredDecision {
  readonly verdict: Verdict;
  /** A contest is open: nobody should act on it (contract 6.2). */
  readonly restricted: boolean;
}

/** One verdict of one tenant; another tenant's looks like none. */
export async function findDecision(
  database: Database,
  kid: string,
  requestId: string,
): Promise<StoredDecision | null> {
  const row = await database
    .read('decisions')
    .where({ kid, request_id: requestId })
    .first<{ verdict: string } | undefined>('verdict');
  return row ? { verdict: JSON.parse(row.verdict) as Verdict, restricted: false } : null;
}

/** Forgets expired nonces in small steps, so that the writer is never held long. Returns how many went. */
export async function purgeNonces(database: Database, now: number, step = 2000): Promise<number> {
  let total = 0;
  for (;;) {
    const gone = await database.transaction((tx) =>
      tx('nonces')
        .whereIn(
          ['kid', 'nonce'],
          tx('nonces').select('kid', 'nonce').where('expires_at', '<', now).limit(step),
        )
        .delete(),
    );
    total += gone;
    if (gone < step) return total;
  }
}
