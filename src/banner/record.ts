import { randomBytes, toBase64Url, toJson } from '../browser/encoding.ts';
import { attempt } from '../browser/page.ts';

/** The record of choices in this browser: the principal's secret and the last choice per purpose. */

export interface Choice {
  readonly choice: 'granted' | 'denied' | 'withdrawn';
  /** The policy version that the choice was made under. */
  readonly version: number;
  /** The definition of the purpose that the choice was made under; null if gpd wrote the words. */
  readonly definition: number | null;
  readonly at: number;
  /** When a grant expires; 0 if only its time is known. */
  readonly until: number;
  /**
   * The choice's entry in the ledger; null while the server has not recorded it. The hash is empty until the
   * ledger answers which entry it is.
   */
  readonly proof: { readonly seq: number; readonly hash: string } | null;
  /** The person agreed to this purpose alone although GPC was on. */
  readonly overGpc?: true;
  /** The ledger says that the grant has ended, and why: the person is asked again. */
  readonly ended?: 'expired' | 'policy-outdated';
}

export type Action = 'grant' | 'deny' | 'withdraw';

export interface Write {
  readonly action: Action;
  readonly purposes: readonly string[];
  readonly policyVersion: number;
  readonly gpc: boolean;
  readonly overGpc?: true;
  /** A grant names for each purpose the definition that the person was shown. */
  readonly definitions?: Readonly<Record<string, number>>;
  /** The Idempotency-Key: a write that is sent twice counts once. */
  readonly key: string;
}

export interface Principal {
  readonly secret: string;
  readonly principalId: string;
}

export interface ConsentRecord extends Principal {
  readonly choices: Readonly<Record<string, Choice>>;
  /** Refusals that the server has not received yet, or has refused; never a grant. */
  readonly pending: readonly Write[];
  /** When the ledger last answered for the grants, in epoch milliseconds. */
  readonly confirmedAt?: number;
  /**
   * The browser takes over what the ledger says: it is joined with an account, or its cookie had no room for
   * the choices.
   */
  readonly followsLedger?: boolean;
}

const SECRET_BYTES = 32;
const KEY_BYTES = 16;

export const createKey = (): string => toBase64Url(randomBytes(KEY_BYTES));

/** A browser principal: `b_` + toBase64Url(SHA-256(its 32 secret bytes)), contract section 7. */
export async function createPrincipal(): Promise<Principal> {
  const bytes = randomBytes(SECRET_BYTES);
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return { secret: toBase64Url(bytes), principalId: `b_${toBase64Url(hash)}` };
}

const PREFIX = 'gpd-consent:';
const ASKED_PREFIX = 'gpd-gpc-asked:';
const itemName = (kid: string): string => PREFIX + kid;

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

/** Stores the record between pages. If the browser stores nothing, the next page asks again. */
export type Store = ReturnType<typeof createStore>;

/** @returns false if the browser refuses it */
const writeItem = (name: string, value: object): boolean =>
  attempt(() => {
    localStorage.setItem(name, toJson(value));
    return true;
  }) ?? false;

/** @returns null for an item that is missing, forbidden or not JSON */
const readItem = (name: string): unknown =>
  attempt((): unknown => JSON.parse(localStorage.getItem(name) ?? ''));

const removeRecord = (kid: string): void => void attempt(() => localStorage.removeItem(itemName(kid)));

/** A full storage would keep the older record, which may grant what was withdrawn since: it is removed. */
function saveRecord(kid: string, record: ConsentRecord): boolean {
  if (writeItem(itemName(kid), record)) return true;
  // If the browser forbids removal, it stored nothing either.
  removeRecord(kid);
  if (writeItem(itemName(kid), record)) return true;
  // The unsent writes alone may fit. Without choices the next page asks again.
  if (record.pending.length > 0) writeItem(itemName(kid), { ...record, choices: {} });
  return false;
}

export function createStore() {
  /** The record that storage refused; it is newer than anything in storage. */
  let unsaved: { readonly kid: string; readonly record: ConsentRecord } | null = null;
  return {
    /** @returns null if no record is stored or it cannot be read: the person is asked again */
    load(kid: string): ConsentRecord | null {
      if (unsaved?.kid === kid) return unsaved.record;
      const found = readItem(itemName(kid));
      return isRecord(found) ? found : null;
    },
    save(kid: string, record: ConsentRecord): void {
      unsaved = saveRecord(kid, record) ? null : { kid, record };
    },
    /** Removes the principal and every choice. */
    remove(kid: string): void {
      unsaved = null;
      removeRecord(kid);
    },
    /** @returns when a yes over GPC was last asked for, by purpose, in epoch milliseconds */
    loadAsked(kid: string): Readonly<Record<string, number>> {
      const found = readItem(ASKED_PREFIX + kid);
      return isObject(found) ? (found as Record<string, number>) : {};
    },
    /** @returns false if the browser stores nothing: then a yes over GPC must not be asked for */
    saveAsked: (kid: string, askedAt: Readonly<Record<string, number>>) =>
      writeItem(ASKED_PREFIX + kid, askedAt),
    /** True if pages of other origins share the record. */
    isShared: false as boolean,
    /** Stores the signed state for the site's server; only a cookie reaches it. */
    saveState: (_state: string | undefined): void => {},
    /** The tenant of the only stored record, for a page without configuration; null if there are several. */
    findOnlyKid(): string | null {
      const names = attempt(() => Object.keys(localStorage).filter((name) => name.startsWith(PREFIX)));
      return names?.length === 1 ? (names[0]?.slice(PREFIX.length) ?? null) : null;
    },
    /**
     * @param onChange called when another page of the site may have saved a record
     * @param onReturn called when the person comes back to this page
     */
    watch(kid: string, onChange: () => void, onReturn: () => void): void {
      // Another page has saved since, so the unsaved record of this page is the older one.
      const dropUnsaved = (): void => {
        unsaved = null;
        onChange();
      };
      addEventListener('storage', ({ key }) => {
        if (key === itemName(kid) || key === null) dropUnsaved();
      });
      // A page in the back/forward cache gets no storage event.
      addEventListener('pageshow', ({ persisted }) => {
        if (!persisted) return;
        dropUnsaved();
        onReturn();
      });
      addEventListener('visibilitychange', () => {
        if (document.visibilityState === 'visible') onReturn();
      });
    },
  };
}
