import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { readJwks } from '../../src/agents/directory.ts';
import { type Agents, loadAgentKeys, newDirectory, startAgents } from '../../src/agents/service.ts';
import { createNonceClaimer, purgeAgentNonces } from '../../src/agents/store.ts';
import { type BotAuthDeps, judgeSignatures } from '../../src/agents/verify.ts';
import type { Database } from '../../src/db/engine.ts';
import { Unavailable } from '../../src/lib/errors.ts';
import { HEADERS, run, type World } from '../ingest/support.ts';
import { addAgent } from '../support/agents.ts';
import { NOW } from '../support/make.ts';
import { started } from '../support/started.ts';
import {
  AGENT_ORIGIN,
  type Agent,
  createAgent,
  createDeps,
  createRequest,
  joinSignatures,
  NOW_SECONDS,
  quoted,
  type SignOptions,
  signedHeaders,
  verifiedAgent,
} from './support/agent.ts';
import { createSqlite } from './support/sqlite.ts';

/** Keys and nonces of agents in a real SQLite file that two nodes share. */

const AGENT = createAgent();
/** Another key of the same directory. */
const NEW = createAgent();
const OTHER = createAgent('https://other.example');

const file = started(() => createSqlite());
let second: Database;
beforeAll(async () => {
  second = await file.connect();
});

async function pin(...keys: readonly object[]): Promise<void> {
  const read = (await readJwks({ keys })) ?? [];
  await addAgent(file.database, { ...newDirectory(AGENT.directory, 'pinned'), keys: read });
}

function verdict(agent: Agent, { findKey }: Pick<Agents, 'findKey'>): Promise<string | null> {
  return verifiedAgent(createDeps([], { findKey }), createRequest(signedHeaders(agent)), NOW);
}

describe('a key of a directory', () => {
  it.each<readonly [string, Readonly<Record<string, unknown>>, boolean]>([
    ['from nbf on', { nbf: NOW_SECONDS }, true],
    ['before nbf', { nbf: NOW_SECONDS + 1 }, false],
    ['until exp', { exp: NOW_SECONDS + 1 }, true],
    ['at exp', { exp: NOW_SECONDS }, false],
    ['between both in milliseconds', { nbf: NOW - 60_000, exp: NOW + 60_000 }, true],
    ['at exp in milliseconds', { exp: NOW }, false],
    ['before nbf in milliseconds', { nbf: NOW + 1000 }, false],
    ["by its thumbprint beside another's kid", { kid: NEW.thumbprint }, true],
  ])('%s: %o is good: %s', async (_name, over, good) => {
    await pin({ ...AGENT.jwk, ...over });
    const findKey = await loadAgentKeys(file.database);
    expect(await verdict(AGENT, { findKey })).toBe(good ? AGENT_ORIGIN : null);
    expect(await verdict(NEW, { findKey })).toBeNull();
  });

  it('is rotated and revoked in a running server, which starts with whatever points are listed', async () => {
    await pin({ ...AGENT.jwk, x: '_'.repeat(43) }, { ...AGENT.jwk, x: 'A'.repeat(43) }, AGENT.jwk);
    const onFault = (error: unknown): never => {
      throw error;
    };
    const agents = await startAgents(file.database, { openDiscovery: false, clock: () => NOW, onFault });
    expect(await verdict(AGENT, agents)).toBe(AGENT_ORIGIN);
    expect(await verdict(NEW, agents)).toBeNull();
    await pin(AGENT.jwk, NEW.jwk);
    await vi.waitFor(async () => expect(await verdict(NEW, agents)).toBe(AGENT_ORIGIN), { timeout: 20_000 });
    expect(await verdict(AGENT, agents)).toBe(AGENT_ORIGIN);
    await pin(NEW.jwk);
    await vi.waitFor(async () => expect(await verdict(AGENT, agents)).toBeNull(), { timeout: 20_000 });
    expect(await verdict(NEW, agents)).toBe(AGENT_ORIGIN);
    await agents.stop();
  });
});

it('gpd reports an unavailable database once, not at every look', async () => {
  const separate = await createSqlite();
  const faults: unknown[] = [];
  const agents = await startAgents(separate.database, {
    openDiscovery: false,
    clock: Date.now,
    onFault: (error) => faults.push(error),
    interval: 5,
  });
  await separate.database.close();
  await sleep(100);
  await agents.stop();
  await separate.close();
  expect(faults).toHaveLength(1);
});

type Node = Pick<BotAuthDeps, 'claimNonce'>;
const node = (database: Database): Node => ({ claimNonce: createNonceClaimer(database) });

let bundles = 0;

/** With a bundle of its own each time. */
function ask(headers: Readonly<Record<string, string>>, now = NOW, on?: Node): Promise<string | null> {
  bundles += 1;
  const request = createRequest(headers, { bundle: `acme|${bundles}` });
  return verifiedAgent(createDeps([AGENT, OTHER], on ?? node(file.database)), request, now);
}

const withNonce = (nonce: string, agent: Agent = AGENT, options: SignOptions = {}): Record<string, string> =>
  signedHeaders(agent, { ...options, params: { nonce: quoted(nonce), ...options.params } });

describe('a nonce', () => {
  it('is used up by another signature of the same key, on another node, and new for another agent', async () => {
    expect(await ask(withNonce('reused'))).toBe(AGENT_ORIGIN);
    const newer = withNonce('reused', AGENT, { params: { created: String(NOW_SECONDS - 1) } });
    expect(await ask(newer, NOW, node(second))).toBeNull();
    expect(await ask(withNonce('reused', OTHER))).toBe(OTHER.origin);
  });

  it('is not used up by a signature that does not verify', async () => {
    const good = withNonce('kept');
    const forged = { ...good, signature: withNonce('kept', OTHER)['signature'] ?? '' };
    expect(await ask(forged)).toBeNull();
    expect(await ask(good, NOW + 600_000)).toBeNull();
    expect(await ask(good)).toBe(AGENT_ORIGIN);
  });

  it('is remembered for as long as the signature could be replayed', async () => {
    const headers = withNonce('remembered', AGENT, { params: { expires: String(NOW_SECONDS + 60) } });
    expect(await ask(headers)).toBe(AGENT_ORIGIN);
    await purgeAgentNonces(second, NOW + 60_000);
    expect(await ask(headers, NOW + 60_000)).toBeNull();
    expect(await purgeAgentNonces(second, NOW + 600_000)).toBeGreaterThan(0);
    expect(await ask(headers, NOW + 600_000)).toBeNull();
    // A nonce that gpd has purged does not become new when the clock goes back.
    expect(await ask(headers)).toBeNull();
    await second.transaction((tx) => tx('meta').where('name', 'like', 'nonces-%').delete());
  });

  it('of a replayed signature names nobody for another signature in the request', async () => {
    const replayed = withNonce('first', AGENT, { label: 'a' });
    expect(await ask(replayed)).toBe(AGENT_ORIGIN);
    expect(await ask(joinSignatures(replayed, withNonce('x', OTHER, { label: 'b' })))).not.toBe(AGENT_ORIGIN);
  });

  it('is stored as a hash', async () => {
    await ask(withNonce('a-secret-of-the-agent'));
    const rows = await file.database.read('agent_nonces').select();
    expect(JSON.stringify(rows)).not.toContain('a-secret-of-the-agent');
    expect(rows.every((row: { nonce: string }) => /^[A-Za-z0-9_-]{43}$/.test(row.nonce))).toBe(true);
  });

  it('need not be there: a signature is good until it expires, and leaves nothing behind', async () => {
    const before = await file.database.read('agent_nonces').select();
    for (const later of [0, 290_000]) expect(await ask(signedHeaders(AGENT), NOW + later)).toBe(AGENT_ORIGIN);
    expect(await ask(signedHeaders(AGENT), NOW + 291_000)).toBeNull();
    expect(await file.database.read('agent_nonces').select()).toEqual(before);
  });
});

describe('a bundle that is sent again', () => {
  const ingest = (headers: Readonly<Record<string, string>>, world: World): ReturnType<typeof run> =>
    run({
      ...world,
      input: { headers: { ...HEADERS, ...headers } },
      services: { botAuth: (request, at) => judgeSignatures(createDeps([AGENT], node(second)), request, at) },
    });

  it('after a 503 keeps its agent, and another bundle does not get it', async () => {
    const headers = withNonce('after a 503');
    const plaintext = { nonce: 'A'.repeat(22) };
    await expect(ingest(headers, { plaintext, outcome: new Unavailable('busy', 1) })).rejects.toThrow('busy');
    const again = await ingest(headers, { plaintext });
    expect(again.response).toMatchObject({ class: 'declared_agent', declaredAgentId: AGENT_ORIGIN });
    const other = await ingest(headers, { plaintext: { nonce: `${'A'.repeat(21)}Q` } });
    expect(other.response.class).not.toBe('declared_agent');
  });

  it('is another bundle when another tenant uses the same nonce', async () => {
    const headers = withNonce('two tenants');
    const nonce = `${'B'.repeat(21)}A`;
    expect((await ingest(headers, { plaintext: { nonce } })).response.class).toBe('declared_agent');
    const request = createRequest(headers, { bundle: `other|${nonce}` });
    expect(await verifiedAgent(createDeps([AGENT], node(second)), request, NOW)).toBeNull();
  });
});
