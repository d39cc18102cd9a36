import type { Database } from '../db/db.ts';
import { impersonalEntry } from '../ledger/entries.ts';
import type { Columns } from '../lib/columns.ts';
import { sha256 } from '../lib/hash.ts';
import { appendOne, lockHead } from '../log/append-store.ts';
import type { EntryMacs } from '../log/entry-check.ts';

/** What a tenant's banner shows, as one node knows it. */
export interface ShownBanner {
  readonly kid: string;
  /** Of the tenant: a node that is behind must not publish what was replaced. */
  readonly revision: number;
  /** Canonical JSON of all texts, in all languages. */
  readonly texts: string;
  /** SHA-256 of the script, lower-case hex. */
  readonly script: string;
  readonly policyVersion: number;
}

interface ListedBanner {
  readonly seq: number;
  readonly texts: string;
  readonly textsSha256: string;
  readonly scriptSha256: string;
  readonly publishedAt: number;
}

/**
 * Says in the log what is shown, once a change. The head's lock orders several nodes; a node that polls late or still runs
 * the older script says nothing twice.
 * @returns the entry, or null when the log says so already
 */
export function publishBanner(database: Database, banner: ShownBanner, now: number, macs?: EntryMacs) {
  const { kid, revision, texts, script, policyVersion } = banner;
  const digest = sha256(texts).toString('hex');
  return database.transaction(async (tx) => {
    await lockHead(tx, kid);
    const table = () => tx('banners').where({ kid });
    const last = await table()
      .orderBy('seq', 'desc')
      .first<Columns<ListedBanner & Pick<ShownBanner, 'revision'>> | undefined>();
    if (last?.texts_sha256 === digest && last.script_sha256 === script) return null;
    if (last && last.revision > revision) return null;
    const same = { revision, texts_sha256: digest, script_sha256: script };
    if (await table().where(same).first()) return null;
    const body = { texts: digest, script, policyVersion };
    const entry = impersonalEntry({ type: 'banner.published', at: now, purpose: null }, body);
    const appended = await appendOne(tx, kid, entry, macs);
    await tx('banners').insert({ kid, seq: appended.seq, ...same, texts, published_at: now });
    return appended;
  });
}

/** Newest first: what people were shown, to compare with the log. */
export async function listBanners(database: Database, kid: string) {
  const names = { textsSha256: 'texts_sha256', scriptSha256: 'script_sha256', publishedAt: 'published_at' };
  const banners = database.read('banners').where({ kid }).orderBy('seq', 'desc');
  return (await banners.select('seq', 'texts', names)) as ListedBanner[];
}
