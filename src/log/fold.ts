import { HOUR } from '../lib/clock.ts';
import { tryOr } from '../lib/errors.ts';
import { type DefinedPurpose, definedBy, type Purpose } from '../tenants/purposes.ts';

/** Sums up all entries of a log in order. The result grows with hours and definitions, not with people. */

export interface Entry {
  readonly type?: unknown;
  readonly time?: unknown;
  readonly purpose?: unknown;
  readonly body?: unknown;
}

export interface AnchoredHour {
  readonly seq: number;
  readonly count: number;
  readonly root: string;
}

/** Retention deleted rows before these times, together with their anchors. */
export interface Expired {
  readonly verdicts: number;
  readonly audit: number;
}

export interface Fold {
  genesisKey: unknown;
  readonly policies: Map<
    number,
    { readonly seq: number } & Readonly<Record<'sha256' | 'material' | 'time', unknown>>
  >;
  /** The last definition of each purpose that was not removed since. */
  readonly purposes: Map<string, { readonly seq: number; readonly purpose: DefinedPurpose }>;
  /** The purpose of each definition. */
  readonly definitions: Map<number, string>;
  /** The key is the start of the hour. */
  readonly verdicts: Map<number, AnchoredHour>;
  readonly audit: Map<number, AnchoredHour>;
  expired: Expired;
}

/** The audit log outlives the rows that it describes: it names no person. */
export const AUDIT_DAYS_MS = 730 * 24 * HOUR;

export const floorHour = (at: number): number => Math.floor(at / HOUR) * HOUR;

export function emptyFold(): Fold {
  return {
    genesisKey: null,
    policies: new Map(),
    purposes: new Map(),
    definitions: new Map(),
    verdicts: new Map(),
    audit: new Map(),
    expired: { verdicts: 0, audit: 0 },
  };
}

export function expiredBy({ body, time }: Entry, before: Expired): Expired {
  const cutoff = Date.parse(String((body as { before?: unknown }).before));
  return {
    verdicts: Math.max(before.verdicts, cutoff || 0),
    audit: Math.max(before.audit, floorHour(Date.parse(String(time)) - AUDIT_DAYS_MS) || 0),
  };
}

/** Entries of unknown types are not read; their hash is still checked against the tree. */
export function parseStored(text: string): Entry {
  const value = tryOr((): unknown => JSON.parse(text), null);
  return typeof value === 'object' && value !== null ? value : {};
}

function definePurpose(fold: Fold, seq: number, body: Readonly<Record<string, unknown>>): void {
  const id = String(body['id']);
  if (body['removed'] === true) {
    fold.purposes.delete(id);
    return;
  }
  const { material = true, by: _by, banner = true, ...words } = body;
  const before = fold.purposes.get(id)?.purpose;
  const purpose = definedBy(seq, { ...words, banner } as unknown as Purpose, before, material === true);
  fold.purposes.set(id, { seq, purpose });
  fold.definitions.set(seq, id);
}

/** Adds one entry. Entries about people change nothing here. */
export function addEntry(fold: Fold, seq: number, entry: Entry): void {
  const body = (entry.body ?? {}) as Readonly<Record<string, unknown>>;
  switch (entry.type) {
    case 'ledger.genesis':
      if (seq === 0) fold.genesisKey = body['key'];
      return;
    case 'policy.published':
      fold.policies.set(Number(body['version']), {
        seq,
        sha256: body['sha256'],
        material: body['material'],
        time: entry.time,
      });
      return;
    case 'purpose.defined':
      definePurpose(fold, seq, body);
      return;
    case 'verdicts.sealed':
    case 'audit.sealed': {
      const hours = entry.type === 'audit.sealed' ? fold.audit : fold.verdicts;
      const anchored = { seq, count: Number(body['count']), root: String(body['root']) };
      hours.set(Date.parse(String(body['from'])), anchored);
      return;
    }
    case 'retention.applied':
      fold.expired = expiredBy(entry, fold.expired);
      return;
    default:
  }
}
