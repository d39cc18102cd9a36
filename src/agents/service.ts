import type { Database } from '../db/db.ts';
import { readRevision } from '../db/meta-store.ts';
import { type FetchOptions, fetchJsonDocument } from '../egress/send.ts';
import { type Clock, HOUR, MINUTE, SECOND } from '../lib/clock.ts';
import { orElse } from '../lib/functions.ts';
import { every } from '../lib/jobs.ts';
import { type AgentKey, importAgentKey, readJwks, validityOf, WELL_KNOWN_PATH } from './directory.ts';
import { type AgentDirectory, type DirectorySource, isAhead, listDirectories, saveFetched } from './store.ts';
import type { FindAgentKey } from './verify.ts';

/** Directories of Web Bot Auth agents as this process knows them; fetched in the background, never for a request. */

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

/**
 * Fetches a directory and stores what it holds now: a key that is gone is revoked. When it fails, the keys of the last
 * good fetch stay in use and the reason is kept.
 */
export async function refreshDirectory(
  database: Database,
  before: AgentDirectory,
  clock: Clock,
  options: FetchOptions = DIRECTORY_FETCH,
) {
  const now = clock();
  let directory: AgentDirectory;
  try {
    const keys = await readJwks(await fetchJsonDocument(before.url, options));
    if (!keys) throw new Error('it is neither a JWKS of at most 32 keys nor a JWK');
    directory = { ...before, keys, fetchedAt: now, triedAt: now, failure: null };
  } catch (error) {
    const failure = error instanceof Error ? error.message : 'it cannot be read';
    directory = { ...before, triedAt: now, failure };
  }
  const ok = directory.failure === null;
  // A stranger names what is discovered: what was never a directory leaves nothing.
  if (ok || before.source !== 'discovered' || before.fetchedAt !== null) {
    await saveFetched(database, directory, before, clock());
  }
  return { directory, ok };
}

export function newDirectory(url: string, source: DirectorySource): AgentDirectory {
  return { url, source, keys: [], fetchedAt: null, triedAt: null, failure: null };
}

type DirectoryKeys = ReturnType<typeof importAll>;

/** Keys by thumbprint. A damaged one is skipped until the next fetch of its directory brings it back; the others stay. */
function importKeys(keys: readonly AgentKey[]) {
  const imported = keys.map((one) => {
    const key = orElse(() => importAgentKey(one), null);
    return key && ([one.thumbprint, { key, ...validityOf(one) }] as const);
  });
  return new Map(imported.filter((entry) => entry !== null));
}

function isDue(directory: AgentDirectory, now: number): boolean {
  if (directory.source === 'pinned') return false;
  const wait = directory.failure === null ? REFRESH_MS : RETRY_MS;
  const { triedAt } = directory;
  return triedAt === null || isAhead(triedAt, now) || now - triedAt >= wait;
}

function lookupKey(keys: DirectoryKeys, url: string, thumbprint: string, nowSeconds: number) {
  const found = keys.get(url)?.get(thumbprint);
  return found && found.nbf <= nowSeconds && nowSeconds < found.exp ? found.key : null;
}

function importAll(directories: readonly AgentDirectory[]) {
  return new Map(directories.map((directory) => [directory.url, importKeys(directory.keys)]));
}

/** The keys as they are stored now, for a replay. */
export async function loadAgentKeys(database: Database): Promise<FindAgentKey> {
  const keys = importAll(await listDirectories(database));
  return (url, thumbprint, nowSeconds) => lookupKey(keys, url, thumbprint, nowSeconds);
}

export type Agents = Awaited<ReturnType<typeof startAgents>>;

interface AgentsOptions {
  /** GPD_WBA_OPEN_DISCOVERY: fetch directories that are on no list. */
  readonly openDiscovery: boolean;
  readonly clock: Clock;
  readonly onFault: (error: unknown) => void;
  readonly fetchOptions?: FetchOptions;
  /** Milliseconds from one look to the next. */
  readonly interval?: number | undefined;
}

interface Known {
  readonly database: Database;
  readonly options: AgentsOptions;
  directories: ReadonlyMap<string, AgentDirectory>;
  keys: DirectoryKeys;
  revision: number;
  readonly wanted: Set<string>;
  /** Origins that were asked lately, so that a stranger cannot make this server ask one again and again. */
  readonly refused: Map<string, number>;
}

async function reload(known: Known): Promise<void> {
  const revision = await readRevision(known.database, 'agents');
  if (revision === known.revision) return;
  const list = await listDirectories(known.database);
  known.directories = new Map(list.map((directory) => [directory.url, directory]));
  known.keys = importAll(list);
  known.revision = revision;
}

async function refreshDue(known: Known): Promise<void> {
  await reload(known);
  const { database, directories, wanted, refused } = known;
  const { clock, fetchOptions } = known.options;
  const now = clock();
  const discovered = [...wanted]
    .filter((url) => !directories.has(url))
    .map((url) => newDirectory(url, 'discovered'));
  wanted.clear();
  for (const [url, until] of refused) if (until <= now) refused.delete(url);
  for (const { url } of discovered) refused.set(url, now + REFUSED_MS);
  const due = [...[...directories.values()].filter((directory) => isDue(directory, now)), ...discovered];
  await Promise.all(due.map((directory) => refreshDirectory(database, directory, clock, fetchOptions)));
  if (due.length > 0) await reload(known);
}

function discover({ options, directories, wanted, refused }: Known, url: string): void {
  const room =
    wanted.size < MAX_WAITING && directories.size < MAX_DISCOVERED && refused.size < MAX_DISCOVERED;
  // One directory per origin, at its well-known address: on a shared host another path may be somebody else's.
  const own = new URL(url).pathname === WELL_KNOWN_PATH && new URL(url).search === '';
  if (options.openDiscovery && room && own && !refused.has(url)) wanted.add(url);
}

/** Loads all directories, follows their changes every second, refreshes what is due. */
export async function startAgents(database: Database, options: AgentsOptions) {
  const state = { directories: new Map(), keys: new Map(), revision: -1 };
  const known: Known = { database, options, ...state, wanted: new Set(), refused: new Map() };
  await reload(known);
  const { interval: ms = SECOND, onFault } = options;
  const looks = every(() => refreshDue(known), { ms, timer: setInterval, onFault });
  return {
    findKey: (url: string, thumbprint: string, nowSeconds: number) => {
      if (!known.keys.has(url)) discover(known, url);
      return lookupKey(known.keys, url, thumbprint, nowSeconds);
    },
    stop: looks.stop,
  };
}
