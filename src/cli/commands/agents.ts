import { createReadStream } from 'node:fs';
import type { Command } from 'commander';
import { cardUrl } from '../../agents/card.ts';
import {
  type AgentKey,
  agentIdentity,
  countMilliseconds,
  directoryUrl,
  readJwks,
} from '../../agents/directory.ts';
import { type Change, createReplay } from '../../agents/replay.ts';
import { loadAgentKeys, newDirectory, refreshDirectory } from '../../agents/service.ts';
import { type AgentDirectory, addDirectory, listDirectories, removeDirectory } from '../../agents/store.ts';
import { iso } from '../../lib/clock.ts';
import { tryOr } from '../../lib/errors.ts';
import {
  type AgentPolicy,
  agentPolicySchema,
  type RecordedRequest,
  recordedRequestSchema,
} from '../../schema/agents.ts';
import { explainIssue } from '../../schema/explain-issue.ts';
import { addCommand, type CommandContext, readJsonFile, YES } from '../command-service.ts';
import {
  confirm,
  type DestructiveFlags,
  EXIT,
  io,
  misused,
  notFound,
  print,
  printTable,
  say,
  type TableColumns,
  tableLines,
} from '../io-service.ts';
import { splitLines } from '../replay/line-files.ts';

export function define(agents: Command): void {
  addCommand(agents, 'add', add, {
    about: 'add an agent by its origin or the URL of its key set',
    example: 'gpd agents add https://agent.example',
  })
    .argument('<url>', 'https origin of the agent, or the URL of its key set')
    .option('--jwks <file>', 'pin these keys instead of fetching the directory')
    .option('--card <url>', 'https URL of the card, for the page Agents; no verdict depends on it');
  addCommand(agents, 'remove', remove, {
    about: 'remove an agent',
    example: 'gpd agents remove https://agent.example',
  })
    .argument('<url>', 'https origin of the agent, or the URL of its key set')
    .option(...YES)
    .option('--dry-run', 'show what would be removed; change nothing');
  addCommand(agents, 'list', list, {
    about: 'list the directories',
    example: 'gpd agents list',
  });
  addCommand(agents, 'replay', replay, {
    about: 'answer a recorded day again by another policy; write nothing',
    example: 'gpd agents replay day.ndjson --policy policy.json',
  })
    .argument('<file>', 'NDJSON, a line {at, method, url, headers, answered?}; - for standard input')
    .requiredOption('--policy <file>', 'a JSON list of rules, as in agents.policy');
  addCommand(agents, 'refresh', refresh, {
    about: 'fetch the directories now',
    example: 'gpd agents refresh https://agent.example',
  }).argument('[url]', 'https origin of the agent, or the URL of its key set');
}

function readPolicy(file: string): AgentPolicy {
  const { data, error } = agentPolicySchema.safeParse(readJsonFile(file), { error: explainIssue });
  const [issue] = error?.issues ?? [];
  if (issue)
    throw misused(`${file}: ${['agents.policy', ...issue.path].map(String).join('.')}: ${issue.message}`);
  return data as AgentPolicy;
}

function readRecorded(text: string, number: number): RecordedRequest {
  const value = tryOr(() => JSON.parse(text) as unknown, null);
  const { data, error } = recordedRequestSchema.safeParse(value, { error: explainIssue });
  const [issue] = error?.issues ?? [];
  if (issue)
    throw misused(`line ${number}: ${issue.path.map(String).join('.') || 'the line'}: ${issue.message}`);
  return data as RecordedRequest;
}

async function replay({ open, config }: CommandContext, file: string, options: { readonly policy: string }) {
  const policy = readPolicy(options.policy);
  const { database } = await open();
  const judge = { findKey: await loadAgentKeys(database), tags: config.wba_tags };
  const replayed = createReplay(judge, policy);
  let number = 0;
  for await (const { text } of splitLines(
    file === '-' ? io().stdin : createReadStream(file),
    MAX_LINE_BYTES,
  )) {
    number += 1;
    if (text.trim() !== '') await replayed.add(readRecorded(text, number));
  }
  const result = replayed.result();
  const columns: TableColumns<Change> = {
    AGENT: ({ agent, status }) => agent ?? status,
    PATH: 'path',
    BEFORE: 'before',
    AFTER: 'after',
    REQUESTS: ({ requests }) => requests.toLocaleString('en'),
  };
  print(result, () => [
    ...(result.changes.length === 0 ? [] : [...tableLines(result.changes, columns), '']),
    `${result.total.toLocaleString('en')} requests, ${result.changed.toLocaleString('en')} would be answered otherwise`,
  ]);
}

/** A line has the headers and at most 32 KB of a body in base64. */
const MAX_LINE_BYTES = 131_072;
const MILLISECONDS = 'nbf or exp is in milliseconds, and RFC 7519 wants seconds';

function describe({ url, source, keys, fetchedAt, failure, card }: AgentDirectory) {
  const thumbprints = keys.map(({ thumbprint }) => thumbprint);
  const state = { source, keys: thumbprints, fetchedAt: iso(fetchedAt), failure, card };
  return { agentId: agentIdentity(url), url, ...state };
}

function checkCardUrl(text: string): string {
  const url = cardUrl(text);
  if (url !== null) return url;
  throw misused(`--card ${text}: not the URL of a card; use an https URL without a fragment`);
}

function checkUrl(text: string): string {
  const url = directoryUrl(text);
  if (url !== null) return url;
  throw misused(`${text}: not an agent; use https://HOST or the https URL of its key set`);
}

async function readPinned(file: string): Promise<AgentKey[]> {
  const keys = await readJwks(readJsonFile(file));
  if (!keys) throw misused(`${file} is neither a JWKS, {"keys": [...]} with at most 32 keys, nor a JWK`);
  if (keys.length === 0) {
    throw misused(`${file} holds no Ed25519 key that may be used; the test key of RFC 9421 is refused`);
  }
  return keys;
}

function printDirectory(directory: AgentDirectory): void {
  if (countMilliseconds(directory.keys) > 0)
    say(`gpd: ${directory.url}: ${MILLISECONDS}; gpd reads them as milliseconds`);
  print(describe(directory), () => [
    `${agentIdentity(directory.url)}  ${directory.source}, ${directory.keys.length} keys`,
  ]);
}

interface AddFlags {
  readonly jwks?: string;
  readonly card?: string;
}

async function add({ byAll, open }: CommandContext, urlText: string, options: AddFlags) {
  const url = checkUrl(urlText);
  const pinned = options.jwks === undefined ? null : await readPinned(options.jwks);
  const card = options.card === undefined ? null : checkCardUrl(options.card);
  const { database } = await open();
  const by = await byAll();
  const before = (await listDirectories(database)).find((entry) => entry.url === url);
  const added = newDirectory(url, pinned ? 'pinned' : 'listed', card);
  const start = pinned
    ? { ...added, keys: pinned, fetchedAt: by.at }
    : { ...(before ?? added), source: added.source, card: added.card };
  // Stored before the fetch: if that fails, the directory keeps its earlier keys and a server tries again.
  await addDirectory(database, start, by);
  const { directory } =
    pinned && !card ? { directory: start } : await refreshDirectory(database, start, Date.now);
  const faults = [directory, directory.card].flatMap((one) => (one?.failure ? [one] : []));
  for (const one of faults)
    say(`gpd: ${one.url}: ${one.failure}; it was added, and a running server tries again`);
  printDirectory(directory);
  if (faults.length > 0) io().exitCode = EXIT.incomplete;
}

async function list({ open }: CommandContext): Promise<void> {
  const { database } = await open();
  const directories = await listDirectories(database);
  printTable(
    directories,
    'no agents; `gpd agents add` adds one',
    {
      AGENT: ({ url }) => agentIdentity(url),
      SOURCE: 'source',
      KEYS: ({ keys }) => keys.length,
      FETCHED: ({ fetchedAt }) => iso(fetchedAt) ?? 'never',
      'LAST FAILURE': ({ failure, card, keys }) =>
        failure ??
        (card?.failure && `${card.url}: ${card.failure}`) ??
        (countMilliseconds(keys) > 0 ? MILLISECONDS : ''),
    },
    directories.map(describe),
  );
}

async function remove({ byAll, open }: CommandContext, urlText: string, options: DestructiveFlags) {
  const url = checkUrl(urlText);
  const { database } = await open();
  const isListed = (await listDirectories(database)).some((directory) => directory.url === url);
  if (!isListed) throw notFound(`no agent ${urlText}; \`gpd agents list\` shows them`);
  const names = { agentId: agentIdentity(url), url };
  if (options.dryRun === true)
    return print({ ...names, dryRun: true }, () => [`would be removed: ${names.agentId}`]);
  await confirm(options, `Removing ${names.agentId}: its signatures no longer verify`);
  await removeDirectory(database, url, await byAll());
  print({ ...names, removed: true }, () => [`${names.agentId} is removed`]);
}

async function refresh({ open }: CommandContext, urlText: string | undefined): Promise<void> {
  const url = urlText === undefined ? null : checkUrl(urlText);
  const { database } = await open();
  const all = await listDirectories(database);
  const chosen = all.filter(
    ({ source, card, ...directory }) =>
      (source !== 'pinned' || card !== null) && (url === null || directory.url === url),
  );
  if (url !== null && chosen.length === 0) {
    throw notFound(`no agent ${urlText}, or its keys are pinned; \`gpd agents list\` shows them`);
  }
  const results = await Promise.all(
    chosen.map((directory) => refreshDirectory(database, directory, Date.now)),
  );
  print(
    results.map(({ directory }) => describe(directory)),
    () =>
      results.map(
        ({ directory }) =>
          `${agentIdentity(directory.url)}  ${directory.failure ?? `${directory.keys.length} keys`}`,
      ),
  );
  if (results.some(({ ok }) => !ok)) io().exitCode = EXIT.incomplete;
}
