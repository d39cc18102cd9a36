import { randomBytes, toBase64Url, toJson } from '../browser/encoding.ts';
import { attempt } from '../browser/page.ts';

/** The record of choices in this browser: the principal's secret and the last choice per purpose. */

export interface Choice {
  readonly choice: 'granted' | 'denied' | 'withdrawn';
  /** Policy version that it was made under. */
  readonly version: number;
  /** The definition of the purpose that it was made under; null: gpd's own words. */
  readonly definition: number | null;
  readonly at: number;
  /** A refusal is remembered as long as a grant. */
  readonly until: number;
  /** Its entry in the ledger; null while the server does not know of it. */
  readonly proof: { readonly seq: number; readonly hash: string } | null;
  /** A yes to this purpose alone, although GPC was on. */
  readonly overGpc?: true;
  /** The ledger says that a grant has ended, and why: asked again. */
  readonly ended?: 'expired' | 'policy-outdated';
}

export type Action = 'grant' | 'deny' | 'withdraw';

/** One write to the server. */
export interface Write {
  readonly action: Action;
  readonly purposes: readonly string[];
  readonly policyVersion: number;
  readonly gpc: boolean;
  readonly overGpc?: true;
  /** A grant names for each purpose the definition that the person was shown. */
  readonly definitions?: Readonly<Record<string, number>>;
  /** Idempotency-Key: sent twice, it counts once. */
  readonly key: string;
}

export interface ConsentRecord {
  readonly secret: string;
  readonly principalId: string;
  readonly choices: Readonly<Record<string, Choice>>;
  /** Refusals that the server could not be told yet, or would not take; a grant is never among them. */
  readonly pending: readonly Write[];
  /** When the ledger last answered for the grants, in epoch milliseconds. */
  readonly confirmedAt?: number;
}

const SECRET_BYTES = 32;
const KEY_BYTES = 16;

/** An Idempotency-Key. */
export const createKey = (): string => toBase64Url(randomBytes(KEY_BYTES));

/** A browser principal: `b_` + toBase64Url(SHA-256(its 32 secret bytes)), contract section 7. */
export async function createPrincipal(): Promise<{ readonly secret: string; readonly principalId: string }> {
  const bytes = randomBytes(SECRET_BYTES);
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return { secret: toBase64Url(bytes), principalId: `b_${toBase64Url(hash)}` };
}

const PREFIX = 'gpd-consent:';
const ASKED_PREFIX = 'gpd-gpc-asked:';
const nameOf = (kid: string): string => PREFIX + kid;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function isChoice(value: unknown): value is Choice {
  if (!isObject(value)) return false;
  const { choice, version, at, until } = value;
  return (
    ['granted', 'denied', 'withdrawn'].includes(choice as string) &&
    [version, at, until].every((number) => Number.isSafeInteger(number))
  );
}

function isRecord(value: unknown): value is ConsentRecord {
  if (!isObject(value)) return false;
  const { secret, principalId, choices, pending } = value;
  return (
    /^[\w-]{43}$/.test(String(secret)) &&
    /^b_[\w-]{43}$/.test(String(principalId)) &&
    isObject(choices) &&
    Object.values(choices).every(isChoice) &&
    Array.isArray(pending)
  );
}

/**
 * Stores the record between pages. If the browser stores nothing, this page remembers, and the next one asks
 * again.
 */
export type Store = ReturnType<typeof createStore>;

const put = (name: string, value: object): boolean =>
  attempt(() => {
    localStorage.setItem(name, toJson(value));
    return true;
  }) ?? false;

/** Undefined for what is not there, is forbidden or is no JSON. */
const get = (name: string): unknown => attempt((): unknown => JSON.parse(localStorage.getItem(name) ?? ''));

/** A full storage refuses the newer record and keeps the older one, which may grant what was withdrawn since. */
function keep(kid: string, record: ConsentRecord): boolean {
  if (put(nameOf(kid), record)) return true;
  // If removal is forbidden, nothing was stored either.
  attempt(() => localStorage.removeItem(nameOf(kid)));
  if (put(nameOf(kid), record)) return true;
  // There is room for what the server was not told yet. Without choices the next page asks.
  if (record.pending.length > 0) put(nameOf(kid), { ...record, choices: {} });
  return false;
}

export function createStore() {
  /** The record that storage did not take: newer than whatever storage holds. */
  let unsaved: { readonly kid: string; readonly record: ConsentRecord } | null = null;
  return {
    /** Null for none, and for one that cannot be read: asked again. */
    load(kid: string): ConsentRecord | null {
      if (unsaved?.kid === kid) return unsaved.record;
      const found = get(nameOf(kid));
      return isRecord(found) ? found : null;
    },
    save(kid: string, record: ConsentRecord): void {
      unsaved = keep(kid, record) ? null : { kid, record };
    },
    /** The principal and every choice. */
    remove(kid: string): void {
      unsaved = null;
      attempt(() => localStorage.removeItem(nameOf(kid)));
    },
    /** When a yes over GPC was last asked for, in epoch milliseconds by purpose. */
    asked(kid: string): Readonly<Record<string, number>> {
      const found = get(ASKED_PREFIX + kid);
      return isObject(found) ? (found as Record<string, number>) : {};
    },
    /** @returns false where the browser keeps nothing: then nothing may be asked */
    saveAsked: (kid: string, askedAt: Readonly<Record<string, number>>) => put(ASKED_PREFIX + kid, askedAt),
    /** The tenant of what is kept, when it is of one: for a page that could not ask which tenant its own is. */
    only(): string | null {
      const names = attempt(() => Object.keys(localStorage).filter((name) => name.startsWith(PREFIX)));
      return names?.length === 1 ? (names[0]?.slice(PREFIX.length) ?? null) : null;
    },
    /**
     * @param changed called when another page of the site may have saved
     * @param returned called when the person comes back to this page
     */
    watch(kid: string, changed: () => void, returned: () => void): void {
      // Another page may have answered since: what this one remembers is older.
      const readAgain = (): void => {
        unsaved = null;
        changed();
      };
      addEventListener('storage', ({ key }) => {
        if (key === nameOf(kid) || key === null) readAgain();
      });
      // A page in the back/forward cache hears no storage event.
      addEventListener('pageshow', ({ persisted }) => {
        if (persisted) readAgain();
        if (persisted) returned();
      });
      addEventListener('visibilitychange', () => {
        if (document.visibilityState === 'visible') returned();
      });
    },
  };
}
