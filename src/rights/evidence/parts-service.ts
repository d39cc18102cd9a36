import { readGivers } from '../../consent/givers-store.ts';
import {
  describeReceipt,
  hasReceipt,
  RECEIPT_CONTEXT,
  type ReceiptFacts,
} from '../../consent/receipt-jsonld.ts';
import type { Reader } from '../../db/engine.ts';
import { isoTime } from '../../lib/clock.ts';
import { pagesBy } from '../../lib/collections.ts';
import { readEntries, type StoredEntry } from '../../log/entries-store.ts';
import { parseStored } from '../../log/fold.ts';
import type { Tenant } from '../../tenants/tenant.ts';
import { createScan, definitionsInForce, type InForce, type LogScan, typeOf, wordsFor } from './log-scan.ts';
import { type OpenedEntry, openedEntries, type PersonScope } from './openings-store.ts';
import type { EvidenceRequest } from './period.ts';

/** The parts of a file of evidence that are lists: one function each, which reads page after page. */

/** `done` of `total` entries of the log; each of the passes over the log counts for an equal share. */
export type Progress = (done: number, total: number) => void;

/** Each part reads from these. */
export interface EvidenceSource {
  readonly reader: Reader;
  readonly tenant: Tenant;
  readonly request: EvidenceRequest;
  /** Null: the file is about all people of the period. */
  readonly person: (PersonScope & { readonly erasedAt: number | null }) | null;
  /** The number of entries under the checkpoint. */
  readonly size: number;
  readonly onProgress: Progress;
}

const PAGE = 1000;

/** Each walks the log from its first entry to its last. */
const PASSES = ['scan', 'entries', 'openings', 'tombstones', 'receipts'] as const;
type Pass = (typeof PASSES)[number];

function reportPage(
  { size, onProgress }: EvidenceSource,
  pass: Pass,
  page: readonly { readonly seq: number }[],
): void {
  const last = page.at(-1);
  if (last) onProgress(Math.floor((PASSES.indexOf(pass) * size + last.seq + 1) / PASSES.length), size);
}

interface Range {
  readonly first: number;
  readonly last: number;
}

/** Entries `first` to `last` in pages. */
async function* entryPages(source: EvidenceSource, { first, last }: Range, pass: Pass) {
  const { reader, tenant } = source;
  const readPage = (after: StoredEntry | undefined) => {
    const next = after ? after.seq + 1 : first;
    return next > last
      ? Promise.resolve([])
      : readEntries(reader, tenant.kid, next, Math.min(PAGE, last - next + 1));
  };
  for await (const page of pagesBy(PAGE, readPage)) {
    yield page;
    reportPage(source, pass, page);
  }
}

async function* openingPages(source: EvidenceSource, { first, last }: Range, pass: Pass) {
  const { reader, tenant, person } = source;
  for await (const page of openedEntries(reader, tenant, { first, last }, person?.refs ?? null)) {
    yield page;
    reportPage(source, pass, page);
  }
}

/** Walks the log once. `tombstone`: the entry that erased the person, if only one entry can be it. */
export async function scanLog(source: EvidenceSource) {
  const { request, person, size } = source;
  const walk = createScan(request);
  const erasures: number[] = [];
  const erasedAt = person?.erasedAt ?? null;
  const erasedTime =
    erasedAt === null ? null : `"time":"${isoTime(erasedAt).slice(0, 19)}Z","type":"subject.erased"`;
  for await (const page of entryPages(source, { first: 0, last: size - 1 }, 'scan')) {
    for (const entry of page) {
      walk.add(entry);
      if (erasedTime !== null && entry.entry.includes(erasedTime)) erasures.push(entry.seq);
    }
  }
  const [tombstone = null, ...moreErasures] = erasures;
  return { scan: walk.scan, tombstone: moreErasures.length === 0 ? tombstone : null };
}

/** Entries of the file: all of a run, and single ones. */
export interface Selection {
  readonly run: Range | null;
  readonly singles: readonly number[];
  readonly definitions: readonly InForce[];
}

export async function selectEntries(
  source: EvidenceSource,
  scan: LogScan,
  tombstone: number | null,
): Promise<Selection> {
  const { first, last } = scan;
  const definitions = definitionsInForce(scan.definitions, source.request.from);
  const seqs = new Set(definitions.map(({ seq }) => seq));
  if (source.person) {
    for await (const page of openingPages(source, scan, 'entries')) for (const { seq } of page) seqs.add(seq);
    if (tombstone !== null && tombstone >= first && tombstone <= last) seqs.add(tombstone);
  }
  const run = source.person || last < first ? null : { first, last };
  const singles = [...seqs].filter((seq) => !run || seq < run.first || seq > run.last);
  return { run, singles: singles.sort((a, b) => a - b), definitions };
}

async function* selectedEntries(
  source: EvidenceSource,
  { run, singles }: Selection,
): AsyncGenerator<StoredEntry> {
  const { reader, tenant } = source;
  const one = async function* (seqs: readonly number[]) {
    for (const seq of seqs) yield* await readEntries(reader, tenant.kid, seq, 1);
  };
  if (!run) return yield* one(singles);
  yield* one(singles.filter((seq) => seq < run.first));
  for await (const page of entryPages(source, run, 'entries')) yield* page;
  yield* one(singles.filter((seq) => seq > run.last));
}

const line = (value: object): string => `${JSON.stringify(value)}\n`;

/** `entries.ndjson`: the bytes of each entry, its number, its hash, and a sentence. */
export async function* entryLines(source: EvidenceSource, selection: Selection, count: () => void) {
  const titles = new Map(source.tenant.purposes.map(({ id, title }) => [id, title]));
  for await (const { seq, hash, entry } of selectedEntries(source, selection)) {
    if (typeOf(entry) === 'purpose.defined') {
      const { id, title } = parseStored(entry).body as { readonly id: string; readonly title?: string };
      if (title !== undefined) titles.set(id, title);
    }
    count();
    yield line({ seq, hash, entry, words: wordsFor(entry, titles) });
  }
}

/** `tombstones.ndjson`: what was erased in the period. For one person, their own erasure alone. */
export async function* tombstoneLines(
  source: EvidenceSource,
  { run }: Selection,
  tombstone: number | null,
  count: () => void,
) {
  const { person, request } = source;
  if (person) {
    const { erasedAt } = person;
    if (erasedAt === null || erasedAt < request.from || erasedAt >= request.to) return;
    count();
    yield line({ seq: tombstone, time: isoTime(erasedAt), subject: person.refs[0] });
  }
  if (!run) return;
  for await (const page of entryPages(source, run, 'tombstones'))
    for (const { seq, hash, entry } of page) {
      if (typeOf(entry) !== 'subject.erased') continue;
      count();
      yield line({ seq, time: parseStored(entry).time, hash });
    }
}

/** `openings.ndjson`: what opens the entries of the persons concerned, and of nobody else. */
export async function* openingLines(
  source: EvidenceSource,
  scan: LogScan,
  onOpened: (one: OpenedEntry) => void,
) {
  const { person } = source;
  for await (const page of openingPages(source, scan, 'openings'))
    for (const one of page) {
      onOpened(one);
      const { seq, principal, key, salt, detail } = one;
      const principalId = person && principal === person.refs[0] ? person.principalId : null;
      yield line({ seq, subject: principal, principalId, key: key.toString('base64url'), salt, detail });
    }
}

type PurposeWords = ReceiptFacts['purpose'];

/** The words of the definition that a choice carries. */
function purposeAt(
  { tenant }: EvidenceSource,
  scan: LogScan,
  { purpose: id, detail }: OpenedEntry,
): PurposeWords {
  const defined = scan.definitions.find(({ seq }) => seq === detail['definition'])?.body;
  const shown = (defined as PurposeWords | undefined) ?? tenant.termsOf(id);
  const { title, description, lawfulBasis } = shown ?? { title: id, description: '', lawfulBasis: 'consent' };
  return { id, title, description, lawfulBasis };
}

/** `receipts/`: one JSON-LD document for up to a thousand choices. */
export async function* receiptDocuments(source: EvidenceSource, scan: LogScan) {
  const { reader, tenant, person, size } = source;
  for await (const page of openingPages(source, scan, 'receipts')) {
    const chosen = page.filter(({ choice }) => hasReceipt(choice));
    const [firstChosen] = chosen;
    if (!firstChosen) continue;
    const grants = chosen.filter(({ choice }) => choice === 'granted');
    const givers = await readGivers(reader, tenant, grants, size);
    const receipts = chosen.map((one) =>
      describeReceipt({
        ...one,
        origin: tenant.signer.name,
        status: one.choice as ReceiptFacts['status'],
        subject: (one.principal === person?.refs[0] ? person.principalId : null) ?? one.principal,
        purpose: purposeAt(source, scan, one),
        detail: one.detail as unknown as ReceiptFacts['detail'],
        policySha256:
          tenant.policies.find(({ version }) => version === one.detail['policyVersion'])?.sha256 ?? null,
        controller: tenant.settings,
        given: givers.get(one.seq) ?? null,
      }),
    );
    const document = { '@context': RECEIPT_CONTEXT, '@graph': receipts };
    yield { name: `receipts/${firstChosen.seq}.jsonld`, text: `${JSON.stringify(document, null, 1)}\n` };
  }
}
