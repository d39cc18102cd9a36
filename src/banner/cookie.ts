import { attempt, doc } from '../browser/page.ts';
import { decodeRecord, encodeRecord } from './compact.ts';
import { logLine } from './html-tag.ts';
import type { Choice, ConsentRecord, Store } from './record.ts';
import { choiceOf } from './status.ts';

/**
 * Stores the record in a cookie, so that the hosts of a domain ask once, and the signed state in another,
 * which the site's server reads (contract-2 section 20).
 */

const PREFIX = 'gpd_record_';
const STATE = 'gpd_consent';
const PROBE = 'gpd_probe';
/** Browsers keep no cookie for longer than 400 days. */
const MAX_AGE = 34_560_000;
/** The limit counts the name and the value. */
const MAX_BYTES = 400;
/** A page learns by reading that another host has changed the cookie: there is no event for it. */
const WATCH_MS = 1000;
const SECOND_MS = 1000;

const JWS = /^[\w-]+(?:\.[\w-]+){2}$/;

const readCookies = (): readonly string[] => attempt(() => doc.cookie.split('; ')) ?? [];

const readCookie = (name: string): string =>
  readCookies()
    .find((cookie) => cookie.startsWith(`${name}=`))
    ?.slice(name.length + 1) ?? '';

/** A choice that the cookie shortens, with all that this page knows of it. */
function completeChoice(choice: Choice, known: Choice | undefined): Choice {
  const isSame =
    known?.choice === choice.choice && Math.floor(known.at / SECOND_MS) === Math.floor(choice.at / SECOND_MS);
  return isSame ? { ...known, proof: choice.proof && (known.proof ?? choice.proof) } : choice;
}

function completeRecord(record: ConsentRecord, known: ConsentRecord | null | undefined): ConsentRecord {
  if (known?.secret !== record.secret) return record;
  const choices = Object.entries(record.choices).map(([id, choice]): [string, Choice] => [
    id,
    completeChoice(choice, choiceOf(known, id)),
  ]);
  const confirmedAt = Math.max(record.confirmedAt ?? 0, known.confirmedAt ?? 0);
  return { ...record, choices: Object.fromEntries(choices), confirmedAt };
}

const lastChoiceAt = ({ choices }: ConsentRecord): number =>
  Math.max(...Object.values(choices).map(({ at }) => at));

/** True if this host keeps a choice that the cookie has no room for, or that the browser kept out. */
function isNewer(known: ConsentRecord | null, found: ConsentRecord | null): boolean {
  if (known?.secret !== found?.secret || !known || !found) return false;
  const isInLedger = found.followsLedger && Object.keys(found.choices).length === 0;
  return !isInLedger && lastChoiceAt(known) > lastChoiceAt(found);
}

const endsGrant = (record: ConsentRecord | null, next: ConsentRecord): boolean =>
  Object.entries(record?.choices ?? {}).some(
    ([id, { choice }]) => choice === 'granted' && choiceOf(next, id)?.choice !== 'granted',
  );

/** The claims of a state, which gpd's signature does not prove here. */
function claimsOf(state: string): { readonly sub?: string; readonly seq?: number; readonly iat?: number } {
  const payload = (state.split('.')[1] ?? '').replace(/-/g, '+').replace(/_/g, '/');
  return attempt(() => JSON.parse(atob(payload)) as ReturnType<typeof claimsOf>) ?? {};
}

/** True if gpd signed it before the other one, and a choice of the person came in between. */
function isOlder(state: string, present: string): boolean {
  const [{ sub, seq = 0, iat = 0 }, other] = [claimsOf(state), claimsOf(present)];
  return sub === other.sub && seq < (other.seq ?? 0) && iat <= (other.iat ?? 0);
}

type WriteCookie = (name: string, value: string) => void;

/** Reads and stores the record of a tenant; this page remembers what the cookie leaves out. */
function createRecords(local: Store, write: WriteCookie) {
  /** The record behind the text of a cookie, with what the text leaves out. */
  let memory: { readonly name: string; readonly text: string; readonly record: ConsentRecord | null } | null =
    null;

  function store(kid: string, record: ConsentRecord): ConsentRecord {
    const name = PREFIX + kid;
    const isSent = record.pending.length === 0;
    // Until gpd has heard a refusal, the site's server knows of it only by the state that is missing.
    if (!isSent) write(STATE, '');
    let text = encodeRecord(record);
    const hasRoom = name.length + 1 + text.length <= MAX_BYTES;
    // The ledger has the choices that do not fit. Without the ledger's answer the other hosts ask again.
    if (!hasRoom) text = encodeRecord({ ...record, choices: {}, followsLedger: isSent });
    write(name, text);
    if ((hasRoom || isSent) && readCookie(name) === text) local.remove(kid);
    else local.save(kid, record);
    // A choice without room in the cookie may change on another host, and the cookie would not show it.
    const usedRecord = hasRoom || !isSent ? record : { ...record, followsLedger: true };
    memory = { name, text: readCookie(name), record: usedRecord };
    return usedRecord;
  }

  function load(kid: string): ConsentRecord | null {
    const name = PREFIX + kid;
    const text = readCookie(name);
    if (memory?.name === name && memory.text === text) return memory.record;
    const known = local.load(kid);
    if (text === '' && known) return store(kid, known);
    const found = decodeRecord(text);
    const record = isNewer(known, found) ? known : found && completeRecord(found, memory?.record);
    memory = { name, text, record };
    // The answer to an earlier request of the page may have brought the state back.
    if (record?.pending.length) write(STATE, '');
    return record;
  }

  const forget = (): void => {
    memory = null;
  };
  return { store, load, forget };
}

/**
 * @param local the store of this host: for the record of a page that had no cookie before, and for an unsent
 * refusal that the cookie has no room for
 * @param domain null for this host alone
 * @returns `local` if the browser refuses a cookie for the domain
 */
export function createCookieStore(local: Store, domain: string | null): Store {
  const write: WriteCookie = (name, value) => {
    const age = value === '' ? 0 : MAX_AGE;
    const scope = domain ? `; Domain=${domain}` : '';
    const cookie = `${name}=${value}; Path=/; Max-Age=${age}; SameSite=Lax; Secure${scope}`;
    attempt(() => Reflect.set(Document.prototype, 'cookie', cookie, document));
  };
  write(PROBE, '1');
  if (readCookie(PROBE) === '') {
    const place = domain ?? location.hostname;
    logLine(`the browser refuses a cookie for data-domain ${place}, so localStorage keeps the choices`);
    return local;
  }
  write(PROBE, '');
  const { store, load, forget } = createRecords(local, write);

  return {
    ...local,
    isShared: true,
    load,
    save(kid, record) {
      // The site's server denies at once what is refused here.
      if (endsGrant(load(kid), record)) write(STATE, '');
      store(kid, record);
    },
    remove(kid) {
      forget();
      local.remove(kid);
      for (const name of [PREFIX + kid, STATE]) write(name, '');
    },
    saveState(state = '') {
      // Answers may overtake each other, in two tabs for example.
      if (JWS.test(state) && !isOlder(state, readCookie(STATE))) write(STATE, state);
    },
    findOnlyKid() {
      const names = readCookies().filter((cookie) => cookie.startsWith(PREFIX));
      if (names.length === 0) return local.findOnlyKid();
      return names.length === 1 ? (names[0]?.slice(PREFIX.length).split('=')[0] ?? null) : null;
    },
    watch(kid, onChange, onReturn) {
      local.watch(kid, onChange, onReturn);
      let text = readCookie(PREFIX + kid);
      setInterval(() => {
        const newText = readCookie(PREFIX + kid);
        if (newText === text) return;
        text = newText;
        onChange();
      }, WATCH_MS);
    },
  };
}
