import { randomBytes } from 'node:crypto';
import { type CommitmentRow, openingKey } from '../../consent/openings-store.ts';
import type { Reader } from '../../db/engine.ts';
import { ConsentStateInvalid } from '../../db/meta-store.ts';
import { cellOf } from '../../db/sql.ts';
import { createMasterKey } from '../../keys/master-key.ts';
import { committedFields, type DoubtDetail, type EntryDetail } from '../../ledger/entries.ts';
import type { Json } from '../../lib/json.ts';
import { parseStored } from '../../log/fold.ts';
import type { Tenant } from '../../tenants/tenant.ts';

/** Reads what opens the entries of persons, and what is left of one who was erased. */

/** One person with the browsers that are joined with them. */
export interface PersonScope {
  /** Keyed references, the one that was named first. */
  readonly refs: readonly string[];
  /** The id of the first reference; null: it is not stored. */
  readonly principalId: string | null;
}

export interface OpenedEntry {
  readonly seq: number;
  /** The leaf hash. */
  readonly hash: string;
  readonly principal: string;
  readonly purpose: string;
  readonly choice: string;
  readonly at: number;
  readonly key: Buffer;
  readonly salt: string;
  /** The fields that the entry commits to. */
  readonly detail: { readonly [name: string]: Json };
}

interface Row extends Omit<CommitmentRow, 'kid'> {
  readonly hash: string;
  readonly entry: string;
  readonly wrapped_key: string;
}

const PAGE = 1000;

/**
 * Openings of the entries `first` to `last` in pages, of these persons alone if `refs` names them.
 * @throws {ConsentStateInvalid} when an entry does not commit to its row: a file of evidence must not tell it
 */
export async function* openedEntries(
  { read }: Reader,
  { kid, principalWrap }: Pick<Tenant, 'kid' | 'principalWrap'>,
  { first, last }: { readonly first: number; readonly last: number },
  refs: readonly string[] | null,
): AsyncGenerator<readonly OpenedEntry[]> {
  const wrapper = createMasterKey(principalWrap, randomBytes);
  for (let next = first; next <= last; ) {
    // Without a window SQLite sorts all that is left for each page.
    const end = refs ? last : Math.min(last, next + PAGE - 1);
    const query = read('consent_openings as o')
      .join('consent_principals as p', (on) => on.on('p.kid', 'o.kid').on('p.principal', 'o.principal'))
      .join('ledger_entries as e', (on) => on.on('e.kid', 'o.kid').on('e.seq', 'o.seq'))
      .where('o.kid', kid)
      .whereBetween('o.seq', [next, end])
      .whereNotNull('p.wrapped_key');
    if (refs) query.whereIn('o.principal', refs);
    const rows = (await query
      .orderBy('o.seq')
      .limit(PAGE)
      .select(
        'o.seq',
        'o.principal',
        'o.purpose',
        'o.choice',
        'o.at',
        'o.salt',
        'o.detail',
        'e.hash',
        'e.entry',
        'p.wrapped_key',
      )) as readonly Row[];
    yield rows.map(({ wrapped_key: wrapped, detail, entry, ...row }) => {
      const key = openingKey({ kid, wrapper }, { ...row, detail }, wrapped, parseStored(entry));
      if (!key) throw new ConsentStateInvalid(kid);
      const fields = committedFields(JSON.parse(detail) as EntryDetail | DoubtDetail);
      return {
        ...row,
        seq: Number(row.seq),
        at: Number(row.at),
        key,
        detail: fields as OpenedEntry['detail'],
      };
    });
    if (refs && rows.length < PAGE) return;
    next = refs ? Number(rows.at(-1)?.seq) + 1 : end + 1;
  }
}

/** @returns null for a principal that is not known; `erasedAt`: null unless its record was erased */
export async function findPerson({ read }: Reader, kid: string, principal: string) {
  const row = (await read('consent_principals')
    .where({ kid, principal })
    .first('wrapped_key', 'erased_at')) as
    | { readonly wrapped_key: string | null; readonly erased_at: number | null }
    | undefined;
  if (!row) return null;
  return { erasedAt: row.wrapped_key === null && row.erased_at !== null ? Number(row.erased_at) : null };
}

/** The texts that a banner showed, as the entry `seq` of the log hashes them. */
export async function readBannerTexts({ read }: Reader, kid: string, seq: number): Promise<string | null> {
  return (await cellOf<string>(read('banners').where({ kid, seq }), 'texts')) ?? null;
}
