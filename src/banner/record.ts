/** What a choice leaves in this browser: the principal's secret and what was said last, purpose by purpose. */

export interface Choice {
  readonly choice: 'granted' | 'denied' | 'withdrawn';
  /** Policy version that it was made under. */
  readonly version: number;
  readonly at: number;
  /** A refusal is remembered as long as a grant. */
  readonly until: number;
  /** Its entry in the ledger; null while the server does not know of it. */
  readonly proof: { readonly seq: number; readonly hash: string } | null;
}

export type Action = 'grant' | 'deny' | 'withdraw';

/** One write to the server. */
export interface Write {
  readonly action: Action;
  readonly purposes: readonly string[];
  readonly policyVersion: number;
  readonly gpc: boolean;
  /** Idempotency-Key: sent twice, it counts once. */
  readonly key: string;
}

export interface ConsentRecord {
  readonly secret: string;
  readonly principalId: string;
  readonly choices: Readonly<Record<string, Choice>>;
  /** Refusals that the server could not be told yet; a grant is never among them. */
  readonly pending: readonly Write[];
}

const PREFIX = 'gpd-consent:';
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

/** What is kept between pages. Where the browser keeps nothing, this page remembers, and the next one asks again. */
export interface Store {
  /** Null for none, and for one that cannot be read: asked again. */
  load(kid: string): ConsentRecord | null;
  save(kid: string, record: ConsentRecord): void;
  /** The tenant of what is kept, when it is of one: for a page that could not ask which tenant its own is. */
  only(): string | null;
  /** Calls back when another page of the site may have saved. */
  watch(kid: string, changed: () => void): void;
}

export function makeStore(): Store {
  let memory: ConsentRecord | null = null;
  return {
    load(kid) {
      try {
        const found: unknown = JSON.parse(localStorage.getItem(nameOf(kid)) ?? 'null');
        return isRecord(found) ? found : memory;
      } catch {
        return memory;
      }
    },
    save(kid, record) {
      memory = record;
      try {
        localStorage.setItem(nameOf(kid), JSON.stringify(record));
      } catch {
        // Full or forbidden.
      }
    },
    only() {
      try {
        const names = Object.keys(localStorage).filter((name) => name.startsWith(PREFIX));
        return names.length === 1 ? (names[0]?.slice(PREFIX.length) ?? null) : null;
      } catch {
        return null;
      }
    },
    watch(kid, changed) {
      addEventListener('storage', ({ key }) => {
        if (key !== nameOf(kid) && key !== null) return;
        // What another tab took away is not to come back from here.
        memory = null;
        changed();
      });
      // A page that comes back from the browser's cache was told of nothing in the meantime.
      addEventListener('pageshow', ({ persisted }) => {
        if (persisted) changed();
      });
    },
  };
}
