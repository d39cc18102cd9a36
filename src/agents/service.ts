import type { Database } from '../db/engine.ts';
import { readRevision } from '../db/meta-store.ts';
import { type FetchOptions, fetchJsonDocument } from '../egress/send.ts';
import { type Clock, HOUR, MINUTE, SECOND } from '../lib/clock.ts';
import { chunksOf } from '../lib/collections.ts';
import { tryOr } from '../lib/errors.ts';
import { every } from '../lib/jobs.ts';
import { type AgentCard, readCard } from './card.ts';
import { type AgentKey, importAgentKey, readJwks, validityOf } from './directory.ts';
import { type AgentDirectory, type DirectorySource, isAhead, listDirectories, saveFetched } from './store.ts';
import type { FindAgentKey } from './verify.ts';

/**
 * Keeps the directories of Web Bot Auth agents; they are fetched in the background, never during a request.
 */

export interface Agents {
  /** The key of an agent, if its directory has it now. */
  readonly findKey: FindAgentKey;
  /** Fetches an unknown directory for later requests, where discovery is open. */
  readonly discover: (directory: string) => void;
  /** Ends when no directory is being fetched any more. */
  readonly stop: () => Promise<void>;
}

export const DIRECTORY_FETCH: FetchOptions = {
  mediaType: 'application/http-message-signatures-directory+json',
  maxBytes: 65_536,
  timeoutMs: 3 * SECOND,
};

const REFRESH_MS = HOUR;
const RETRY_MS = 5 * MINUTE;
const REFUSED_MS = 10 * MINUTE;
const MAX_DISCOVERED = 1000;
const MAX_WAITING = 100;
const REFRESHED_AT_ONCE = 8;

/**
 * Fetches a directory and stores its keys: a key that is missing now is revoked. If the fetch fails, the keys
 * of the last successful fetch stay in use and the reason is stored. A card is fetched with it, and fails
 * alone.
 */
export async function refreshDirectory(
  database: Database,
  before: AgentDirectory,
  clock: Clock,
  options: FetchOptions = DIRECTORY_FETCH,
) {
  const now = clock();
  const [keys, card] = await Promise.all([
    before.source === 'pinned' ? {} : fetchKeys(before.url, now, options),
    before.card && fetchCard(before.card, before.url, options),
  ]);
  const directory: AgentDirectory = { ...before, ...keys, card, triedAt: now };
  const ok = directory.failure === null;
  // Strangers name the discovered addresses: one that was never a directory is not stored.
  if (ok || before.source !== 'discovered' || before.fetchedAt !== null) {
    await saveFetched(database, directory, before, clock());
  }
  return { directory, ok };
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : 'it cannot be read');

async function fetchKeys(url: string, now: number, options: FetchOptions) {
  try {
    const keys = await readJwks(await fetchJsonDocument(url, options));
    if (!keys) throw new Error('it is neither a JWKS of at most 32 keys nor a JWK');
    return { keys, fetchedAt: now, failure: null };
  } catch (error) {
    return { failure: reasonOf(error) };
  }
}

async function fetchCard(card: AgentCard, directory: string, options: FetchOptions): Promise<AgentCard> {
  try {
    const document = await fetchJsonDocument(card.url, { ...options, mediaType: null });
    return { ...card, says: readCard(document, card.url, directory), failure: null };
  } catch (error) {
    return { ...card, failure: reasonOf(error) };
  }
}

/** @param card the URL of its card, where the operator named one */
export function newDirectory(
  url: string,
  source: DirectorySource,
  card: string | null = null,
): AgentDirectory {
  return {
    ...{ url, source, keys: [], fetchedAt: null, triedAt: null, failure: null },
    card: card === null ? null : { url: card, says: null, failure: null },
  };
}

type DirectoryKeys = ReturnType<typeof importAll>;

/** Keys by thumbprint. A damaged key is skipped until the next fetch replaces it. */
function importKeys(keys: readonly AgentKey[]) {
  const imported = keys.map((one) => {
    const key = tryOr(() => importAgentKey(one), null);
    return key && ([one.thumbprint, { key, ...validityOf(one) }] as const);
  });
  return new Map(imported.filter((entry) => entry !== null));
}

function isDue(directory: AgentDirectory, now: number): boolean {
  if (directory.source === 'pinned' && !directory.card) return false;
  const wait = directory.failure === null ? REFRESH_MS : RETRY_MS;
  const { triedAt } = directory;
  return triedAt === null || isAhead(triedAt, now) || now - triedAt >= wait;
}

function lookupKey(keys: DirectoryKeys, ...[url, thumbprint, now]: Parameters<FindAgentKey>) {
  const ofDirectory = keys.get(url);
  if (!ofDirectory) return 'key-set-unknown';
  const found = ofDirectory.get(thumbprint);
  if (!found) return 'key-unknown';
  return found.nbf <= now && now < found.exp ? found.key : 'key-not-in-force';
}

function importAll(directories: readonly AgentDirectory[]) {
  return new Map(directories.map((directory) => [directory.url, importKeys(directory.keys)]));
}

/** The stored keys at this moment, for a replay. */
export async function loadAgentKeys(database: Database): Promise<FindAgentKey> {
  const keys = importAll(await listDirectories(database));
  return (url, thumbprint, nowSeconds) => lookupKey(keys, url, thumbprint, nowSeconds);
}

interface AgentsOptions {
  /** GPD_WBA_OPEN_DISCOVERY: fetches directories that are on no list. */
  readonly openDiscovery: boolean;
  readonly clock: Clock;
  readonly onFault: (error: unknown) => void;
  readonly fetchOptions?: FetchOptions;
  /** Milliseconds between two looks. */
  readonly interval?: number | undefined;
  readonly maxDiscovered?: number;
}

interface AgentCache {
  readonly database: Database;
  readonly options: AgentsOptions;
  directories: ReadonlyMap<string, AgentDirectory>;
  keys: DirectoryKeys;
  revision: number;
  readonly toDiscover: Set<string>;
  /** Origins that were fetched recently, so that a stranger cannot make this server fetch one repeatedly. */
  readonly refused: Map<string, number>;
  /** Hosts that are known or were tried, by site. Each round counts them again, so that no request has to. */
  readonly hostsBySite: Map<string, Set<string>>;
}

async function reload(cache: AgentCache): Promise<void> {
  const revision = await readRevision(cache.database, 'agents');
  if (revision === cache.revision) return;
  const list = await listDirectories(cache.database);
  cache.directories = new Map(list.map((directory) => [directory.url, directory]));
  cache.keys = importAll(list);
  cache.revision = revision;
}

async function refreshDue(cache: AgentCache): Promise<void> {
  await reload(cache);
  const { database, directories, toDiscover, refused } = cache;
  const { clock, fetchOptions } = cache.options;
  const now = clock();
  const unknown = [...toDiscover].filter((url) => !directories.has(url));
  // One of each origin: a stranger names any path.
  const discovered = [...new Map(unknown.map((url) => [new URL(url).origin, url])).values()].map((url) =>
    newDirectory(url, 'discovered'),
  );
  toDiscover.clear();
  for (const [url, until] of refused) if (until <= now) refused.delete(url);
  for (const { url } of discovered) refused.set(new URL(url).origin, now + REFUSED_MS);
  cache.hostsBySite.clear();
  for (const url of [...directories.keys(), ...refused.keys()]) hostsLike(cache, url).add(new URL(url).host);
  const due = [...[...directories.values()].filter((directory) => isDue(directory, now)), ...discovered];
  // Some at a time: a strange site may wait with each answer until the deadline, and each is held in memory.
  for (const batch of chunksOf(due, REFRESHED_AT_ONCE))
    await Promise.all(batch.map((directory) => refreshDirectory(database, directory, clock, fetchOptions)));
  if (due.length > 0) await reload(cache);
}

/**
 * Half of all places are open to every host; of the rest a site gets no more than this, because one name may
 * have any number of hosts. Under a public suffix, such as co.uk, many owners are one site here: no list of
 * suffixes is complete, so they are held back only where places are short.
 */
const MAX_OF_SITE = 20;

/** The hosts of the site of a URL: those with the same last two labels. */
function hostsLike({ hostsBySite }: AgentCache, url: string): Set<string> {
  const site = new URL(url).hostname.split('.').slice(-2).join('.');
  const hosts = hostsBySite.get(site) ?? new Set();
  hostsBySite.set(site, hosts);
  return hosts;
}

function discover(cache: AgentCache, url: string): void {
  const { options, directories, toDiscover, refused } = cache;
  const { maxDiscovered = MAX_DISCOVERED } = options;
  const room =
    toDiscover.size < MAX_WAITING && directories.size < maxDiscovered && refused.size < maxDiscovered;
  if (!options.openDiscovery || !room || refused.has(new URL(url).origin) || toDiscover.has(url)) return;
  const hosts = hostsLike(cache, url);
  const { host } = new URL(url);
  const isShort =
    toDiscover.size >= MAX_WAITING / 2 ||
    directories.size + refused.size + toDiscover.size >= maxDiscovered / 2;
  if (isShort && hosts.size >= MAX_OF_SITE && !hosts.has(host)) return;
  hosts.add(host);
  toDiscover.add(url);
}

/** Loads all directories, follows their changes every second and refreshes those that are due. */
export async function startAgents(database: Database, options: AgentsOptions): Promise<Agents> {
  const state = { directories: new Map(), keys: new Map(), revision: -1 };
  const cache: AgentCache = {
    database,
    options,
    ...state,
    toDiscover: new Set(),
    refused: new Map(),
    hostsBySite: new Map(),
  };
  await reload(cache);
  const { interval: ms = SECOND, onFault } = options;
  const looks = every(() => refreshDue(cache), { ms, timer: setInterval, onFault });
  return {
    findKey: (...query) => lookupKey(cache.keys, ...query),
    discover: (url) => discover(cache, url),
    stop: looks.stop,
  };
}
