import type { z } from 'zod';
import { rightsRef } from '../../audit/audit-store.ts';
import type { Clock } from '../../lib/clock.ts';
import { webhookRows } from '../../notify/notify-service.ts';
import type { OutboxEntry } from '../../notify/outbox-store.ts';
import { ERASURE_SCOPES, type ErasureReceipt, type storedErasureSchema } from '../../schema/rights.ts';
import type { Tenant } from '../../tenants/tenant.ts';

/**
 * Erasure (GDPR article 17, contract 6.4): what is deleted, what is kept and why, as a receipt that names
 * nobody.
 */

export type ScopeResult = ErasureReceipt['scopes'][number];
export type Scope = ScopeResult['scope'];
export type Requester = ErasureReceipt['requestedBy'];

/**
 * The rows to delete, by ids that were looked up. An empty target erases nothing, and its receipt says so.
 */
export interface ErasureTarget {
  /** Everything of these devices. */
  readonly durables: readonly string[];
  /** These requests and nothing else of their devices. */
  readonly requests: readonly string[];
  /** The principal whose consent evidence is shredded. */
  readonly principal: { readonly ref: string; readonly id: string } | null;
  /** The principal whose links are deleted, and whose consent evidence stays unless `principal` names it. */
  readonly linksOf: string | null;
}

export const NOTHING: ErasureTarget = { durables: [], requests: [], principal: null, linksOf: null };

export type ErasureRef = z.infer<typeof storedErasureSchema>['refs'][number];

/** Makes keyed references of everything that the target names, for the line outside the database. */
export function refsOf(
  rightsKey: Uint8Array,
  { durables, requests, principal }: ErasureTarget,
): ErasureRef[] {
  const of = (kind: 'durable' | 'request') => (id: string) => ({ kind, ref: rightsRef(rightsKey, kind, id) });
  const person = principal === null ? [] : [{ kind: 'principal' as const, ref: principal.ref }];
  return [...durables.map(of('durable')), ...requests.map(of('request')), ...person];
}

/** Makes one reference of a request and its device: without both ids nobody gets from one to the other. */
export const leftRef = (
  rightsKey: Uint8Array,
  { requestId, durable }: { readonly requestId: string; readonly durable: string },
): string => rightsRef(rightsKey, 'durable', `${requestId}|${durable}`);

/** Chooses the one reference by which the receipt names the subject. */
export function subjectRef(rightsKey: Uint8Array, target: ErasureTarget): string {
  const { principal, durables, requests, linksOf } = target;
  if (durables[0] !== undefined) return rightsRef(rightsKey, 'durable', durables[0]);
  const person = principal?.ref ?? linksOf;
  if (person !== null) return rightsRef(rightsKey, 'principal', person);
  return rightsRef(rightsKey, 'request', requests[0] ?? 'nobody');
}

/**
 * Makes the keyed reference of a decision, and the events that name the decision once it is deleted
 * (contract-2 section 20).
 */
export function decisionRefs(tenant: Tenant, clock: Clock) {
  const { kid, rightsKey } = tenant;
  const requestRef = (requestId: string): string => rightsRef(rightsKey, 'request', requestId);
  const erasedEvents = (requestId: string): readonly OutboxEntry[] => {
    const event = { kid, principal: null, requestId: null, at: clock() };
    return webhookRows(tenant, 'decision.erased', { ref: requestRef(requestId) }).map((row) => ({
      ...row,
      ...event,
    }));
  };
  return { requestRef, erasedEvents };
}

/** Rows that an erasure keeps. */
export interface Keep {
  /** `/me forget`: a forged fingerprint must not destroy a person's defence. */
  readonly openContests: boolean;
  readonly override: boolean;
}

export const DEFENCE_BASIS = 'GDPR Art. 17(3)(e): defence of legal claims';
/** An erasure of a principal names requests: their device may be other people's too. */
export const DEVICE_BASIS =
  'about a linked device, which others may use too; erase it by one of its requestIds or its visitorId';
const CONSENT_BASIS = 'GDPR Art. 7(1): proof of consent; erased in the person’s own session or by a dpo';
const BACKUP_BASIS = 'encrypted; a restore applies this erasure again before the server listens';

/** Counts of one scope: rows erased and rows retained. */
export interface ScopeCount {
  readonly erased: number;
  readonly retained: number;
  readonly basis?: string | undefined;
}

export type ScopeCounts = Readonly<Partial<Record<Scope, ScopeCount>>>;

/** Counts of an erasure under way. */
export type Tally = Record<Scope, ScopeCount>;

export const emptyTally = (): Tally =>
  Object.fromEntries(ERASURE_SCOPES.map((scope) => [scope, { erased: 0, retained: 0 }])) as Tally;

/** Adds the counts of one table. A basis is kept only when rows are retained on it. */
export function addCount(tally: Tally, scope: Scope, { erased, retained, basis }: ScopeCount): void {
  const counted = tally[scope];
  const keptBasis = retained > 0 ? basis : counted.basis;
  const sum = { erased: erased + counted.erased, retained: retained + counted.retained };
  tally[scope] = keptBasis === undefined ? sum : { ...sum, basis: keptBasis };
}

/**
 * Counts the consent evidence: that of a named principal is shredded, that of a principal whose links alone
 * are deleted stays.
 */
export function consentCount({ principal, linksOf }: ErasureTarget, openings: number): ScopeCount {
  if (principal !== null) return { erased: openings, retained: 0, basis: CONSENT_BASIS };
  return { erased: 0, retained: linksOf === null ? 0 : openings, basis: CONSENT_BASIS };
}

export const erasesAny = (counts: ScopeCounts): boolean =>
  Object.values(counts).some(({ erased }) => erased > 0);

/**
 * The counts of rows and consent with their copies: bytes in the files of the database, and the backups made
 * before.
 */
export const withCopies = (counts: ScopeCounts, erases: boolean, backups: number): ScopeCounts => ({
  ...counts,
  backups: { erased: 0, retained: backups, basis: BACKUP_BASIS },
  storage: { erased: erases ? 1 : 0, retained: 0 },
});

/** Makes one line per scope, in the order of the contract. A scope of which rows stay says `retained`. */
export function scopeResults(counts: ScopeCounts): ScopeResult[] {
  return ERASURE_SCOPES.map((scope) => {
    const { erased = 0, retained = 0, basis } = counts[scope] ?? {};
    if (retained > 0) {
      return { scope, action: 'retained', count: retained, ...(basis === undefined ? {} : { basis }) };
    }
    return { scope, action: erased > 0 ? 'erased' : 'none', count: erased };
  });
}

/** A device may have a hundred thousand rows of these: a large erasure leaves them to pages. */
const PAGED_SCOPES: readonly Scope[] = ['contests', 'decisions', 'links', 'signal-summaries'];

/**
 * The receipt of an erasure whose bytes may still be in the write-ahead log.
 * @param hasLeft requests are left to pages, and nothing of them is counted yet
 */
export const markPending = (scopes: readonly ScopeResult[], hasLeft: boolean): ScopeResult[] =>
  scopes.map((result) => {
    const isLeft = hasLeft && result.action === 'none' && PAGED_SCOPES.includes(result.scope);
    return isLeft || result.action === 'erased' ? { ...result, action: 'pending' } : result;
  });

/** The receipt with the counts of one more page. */
export const withCounts = (scopes: readonly ScopeResult[], counts: Tally): ScopeResult[] =>
  scopes.map((result) =>
    result.action === 'pending' ? { ...result, count: result.count + counts[result.scope].erased } : result,
  );

/**
 * The receipt of an erasure whose rows are deleted.
 * @param areFilesClean whether the files of the database are clean too
 */
export function markComplete(scopes: readonly ScopeResult[], areFilesClean: boolean): ScopeResult[] {
  return scopes.map((result) =>
    (result.action === 'pending' || result.action === 'failed') &&
    (areFilesClean || result.scope !== 'storage')
      ? { ...result, action: result.count > 0 ? 'erased' : 'none' }
      : result,
  );
}

/** The receipt of an erasure whose rows are deleted, while one of their ids is in the rewritten file. */
export const markFailed = (scopes: readonly ScopeResult[]): ScopeResult[] =>
  markComplete(scopes, false).map((result) =>
    result.scope === 'storage' ? { ...result, action: 'failed' } : result,
  );

export const hasFailed = (scopes: readonly ScopeResult[]): boolean =>
  scopes.some(({ action }) => action === 'failed');

export function isIncomplete(scopes: readonly ScopeResult[]): boolean {
  return scopes.some(({ action }) => action === 'pending' || action === 'failed');
}

/** True for rows that a legal hold kept: staff wrote its basis, and gpd all others. */
const isHeld = ({ action, basis = DEFENCE_BASIS }: ScopeResult): boolean =>
  action === 'retained' && ![DEFENCE_BASIS, DEVICE_BASIS, CONSENT_BASIS, BACKUP_BASIS].includes(basis);

export const heldRows = (scopes: readonly ScopeResult[]): number =>
  scopes.reduce((sum, result) => sum + (isHeld(result) ? result.count : 0), 0);

/**
 * True if a legal hold kept everything: gpd then had no bytes in the files of the database to remove either.
 */
export const erasedNothing = (scopes: readonly ScopeResult[]): boolean =>
  heldRows(scopes) > 0 && scopes.every(({ scope, action }) => scope !== 'storage' || action === 'none');

/**
 * False if nothing was deleted and nothing held: a backup cannot bring back what no erasure took, and no line
 * is needed.
 */
export const needsLine = ({
  scopes,
  held: heldRefs = [],
}: {
  readonly scopes: readonly ScopeResult[];
  readonly held?: readonly string[] | undefined;
}): boolean => heldRefs.length > 0 || scopes.some(({ scope, count }) => scope === 'storage' && count > 0);

export type ErasureState = 'complete' | 'partly' | 'held' | 'incomplete';

/** @returns the progress of an erasure, as the console shows it to staff */
export function erasureState(scopes: readonly ScopeResult[]): ErasureState {
  if (isIncomplete(scopes)) return 'incomplete';
  if (heldRows(scopes) === 0) return 'complete';
  return erasedNothing(scopes) ? 'held' : 'partly';
}
