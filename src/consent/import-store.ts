import { type Bindings, type Hot, makeReads } from '../db/sql.ts';
import type { EntryDetail } from '../ledger/entries.ts';
import type { AppendRequest } from './plan-write.ts';

/** Records of another system, compared with what gpd knows: an old record replaces nothing newer, and the same file twice adds nothing. */

/** What a person said last of a purpose. */
interface LastChoice {
  /** Epoch milliseconds; of an imported record when it was made, and 0 where nobody knows. */
  readonly at: number;
  readonly isGrant: boolean;
  /** The person was erased, and has agreed to nothing since. */
  readonly isErased: boolean;
}

/** By person and purpose. */
export type LastChoices = Map<string, LastChoice>;

type Compared = Pick<AppendRequest, 'principal' | 'isGrant' | 'now' | 'imported'> & {
  readonly entries: readonly { readonly purpose: string }[];
};

const keyOf = (principal: string, purpose: string): string => `${principal}|${purpose}`;

const readChoices = makeReads({
  about: { kid: 'text', principal: 'text', purpose: 'text' },
  sql: `SELECT p.principal AS principal, q.purpose AS purpose, p.erased_at AS erased_at, s.choice AS choice,
      o.at AS at, o.detail AS detail
    FROM q JOIN consent_principals p ON p.kid = q.kid AND p.principal = q.principal
    LEFT JOIN consent_state s ON s.kid = q.kid AND s.principal = q.principal AND s.purpose = q.purpose
    LEFT JOIN consent_openings o ON o.kid = q.kid AND o.seq = s.seq`,
  columns: ['principal', 'purpose', 'erased_at', 'choice', 'at', 'detail'],
});

function timeOf(at: unknown, detail: unknown): number {
  // Its opening is gone: nothing is known to be newer than it.
  if (at === null) return Number.POSITIVE_INFINITY;
  const { source, recordedAt } = JSON.parse(String(detail)) as EntryDetail;
  if (source !== 'import') return Number(at);
  return recordedAt === undefined ? 0 : Date.parse(recordedAt);
}

/** For the records among these requests; without records nothing is read. */
export async function loadLastChoices(
  hot: Hot,
  kid: string,
  requests: readonly Compared[],
): Promise<LastChoices> {
  const asked = requests.flatMap(({ imported, principal, entries }): Bindings[] =>
    imported ? entries.map(({ purpose }): Bindings => [kid, principal, purpose]) : [],
  );
  if (asked.length === 0) return new Map();
  const [rows = []] = await readChoices(hot, asked);
  return new Map(
    rows.flatMap(([principal, purpose, erasedAt, choice, at, detail]): [string, LastChoice][] => {
      const isErased = erasedAt !== null;
      if (choice === null && !isErased) return [];
      const known = { at: timeOf(at, detail), isGrant: choice === 'granted', isErased };
      return [[keyOf(String(principal), String(purpose)), known]];
    }),
  );
}

/**
 * Asked of one request after the other, in their order; one that is not refused is what is known from then on. Of two choices
 * of one time the refusal counts.
 * @returns null: it is recorded
 */
export function refuseRecord(
  last: LastChoices,
  { principal, entries, isGrant, now, imported }: Compared,
): 'erased' | 'outdated' | null {
  const at = imported ? (imported.recordedAt ?? 0) : now;
  for (const { purpose } of entries) {
    const key = keyOf(principal, purpose);
    const known = last.get(key);
    if (imported && known) {
      if (known.isErased) return 'erased';
      const isNews = at > known.at || (at === known.at && known.isGrant && !isGrant);
      if (!isNews) return 'outdated';
    }
    last.set(key, { at, isGrant, isErased: known?.isErased === true && !isGrant });
  }
  return null;
}
