import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createNonceClaimer, purgeAgentNonces } from '../../src/agents/store.ts';
import { type BotAuthDeps, verifyBotAuth } from '../../src/agents/verify.ts';
import type { Database } from '../../src/db/engine.ts';
import { Unavailable } from '../../src/lib/errors.ts';
import { HEADERS, run, type World } from '../ingest/support.ts';
import { NOW } from '../support/make.ts';
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
} from './support/agent.ts';
import { createSqlite, type SqliteFile } from './support/sqlite.ts';

/** A signature with a nonce is good once, on all nodes together; the replay cache is a real SQLite file. */

const AGENT = createAgent();
const OTHER = createAgent('https://other.example');

let file: SqliteFile;
let second: Database;
beforeAll(async () => {
  file = await createSqlite();
  second = await file.connect();
});
afterAll(() => file.close());

type Node = Pick<BotAuthDeps, 'claimNonce'>;
const node = (database: Database): Node => ({ claimNonce: createNonceClaimer(database) });

let bundles = 0;

/** With a bundle of its own each time. */
function ask(on: Node, headers: Readonly<Record<string, string>>, now = NOW): Promise<string | null> {
  bundles += 1;
  const request = createRequest(headers, { bundle: `acme|${bundles}` });
  return verifyBotAuth(createDeps([AGENT, OTHER], on), request, now);
}

const withNonce = (nonce: string, agent: Agent = AGENT, options: SignOptions = {}): Record<string, string> =>
  signedHeaders(agent, { ...options, params: { nonce: quoted(nonce), ...options.params } });

describe('a nonce', () => {
  it('is good once', async () => {
    const headers = withNonce('once');
    const here = node(file.database);
    expect(await ask(here, headers)).toBe(AGENT_ORIGIN);
    expect(await ask(here, headers)).toBeNull();
    expect(await ask(here, headers)).toBeNull();
  });

  it('is good once on two nodes that share a database, however many ask at a time', async () => {
    const headers = withNonce('shared');
    const nodes = [node(file.database), node(second)];
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => ask(nodes[i % 2]!, headers)));
    expect(answers.filter((answer) => answer !== null)).toEqual([AGENT_ORIGIN]);
    expect(await ask(node(second), headers)).toBeNull();
  });

  it('is used up by another signature of the same key', async () => {
    const here = node(file.database);
    expect(await ask(here, withNonce('reused'))).toBe(AGENT_ORIGIN);
    const newerSignature = withNonce('reused', AGENT, { params: { created: String(NOW_SECONDS - 1) } });
    expect(await ask(here, newerSignature)).toBeNull();
  });

  it('of one agent is new for another agent', async () => {
    const here = node(file.database);
    expect(await ask(here, withNonce('same'))).toBe(AGENT_ORIGIN);
    expect(await ask(here, withNonce('same', OTHER))).toBe('https://other.example');
  });

  it('is not used up by a signature that does not verify', async () => {
    const here = node(file.database);
    const good = withNonce('kept');
    const forged = { ...good, signature: withNonce('kept', OTHER)['signature'] ?? '' };
    expect(await ask(here, forged)).toBeNull();
    expect(await ask(here, good, NOW + 600_000)).toBeNull();
    expect(await ask(here, good)).toBe(AGENT_ORIGIN);
  });

  it('is remembered for as long as the signature could be replayed', async () => {
    const here = node(file.database);
    const headers = withNonce('remembered', AGENT, { params: { expires: String(NOW_SECONDS + 60) } });
    expect(await ask(here, headers)).toBe(AGENT_ORIGIN);
    await purgeAgentNonces(second, NOW + 60_000);
    expect(await ask(here, headers, NOW + 60_000)).toBeNull();
    expect(await purgeAgentNonces(second, NOW + 600_000)).toBeGreaterThan(0);
    expect(await ask(here, headers, NOW + 600_000)).toBeNull();
    // A nonce that gpd has purged does not become new when the clock goes back.
    expect(await ask(here, headers)).toBeNull();
    await second.transaction((tx) => tx('meta').where('name', 'like', 'nonces-%').delete());
  });

  it('of a replayed signature names nobody for another signature in the request', async () => {
    const here = node(file.database);
    const replayed = withNonce('first', AGENT, { label: 'a' });
    expect(await ask(here, replayed)).toBe(AGENT_ORIGIN);
    const both = joinSignatures(replayed, withNonce('x', OTHER, { label: 'b' }));
    expect(await ask(here, both)).not.toBe(AGENT_ORIGIN);
  });

  it('is stored as a hash', async () => {
    await ask(node(file.database), withNonce('a-secret-of-the-agent'));
    const rows = await file.database.read('agent_nonces').select();
    expect(JSON.stringify(rows)).not.toContain('a-secret-of-the-agent');
    expect(rows.every((row: { nonce: string }) => /^[A-Za-z0-9_-]{43}$/.test(row.nonce))).toBe(true);
  });
});

describe('a bundle that is sent again', () => {
  const ingest = (headers: Readonly<Record<string, string>>, world: World): ReturnType<typeof run> =>
    run({
      ...world,
      input: { headers: { ...HEADERS, ...headers } },
      services: { botAuth: (request, at) => verifyBotAuth(createDeps([AGENT], node(second)), request, at) },
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
    const plaintext = { nonce: `${'B'.repeat(21)}A` };
    expect((await ingest(headers, { plaintext })).response.class).toBe('declared_agent');
    const [request, other] = ['acme', 'other'].map((kid) => createRequest(headers, { bundle: `${kid}|x` }));
    const deps = createDeps([AGENT], node(second));
    expect(await verifyBotAuth(deps, request!, NOW)).toBeNull();
    expect(await verifyBotAuth(deps, other!, NOW)).toBeNull();
  });
});

describe('without a nonce', () => {
  it('a signature is good until it expires, and leaves nothing behind', async () => {
    const here = node(file.database);
    const before = await file.database.read('agent_nonces').select();
    const headers = signedHeaders(AGENT);
    for (const later of [0, 1000, 290_000]) expect(await ask(here, headers, NOW + later)).toBe(AGENT_ORIGIN);
    expect(await ask(here, headers, NOW + 291_000)).toBeNull();
    expect(await file.database.read('agent_nonces').select()).toEqual(before);
  });
});
