import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { WELL_KNOWN_PATH } from '../../src/agents/directory.ts';
import { type Agents, newDirectory, startAgents } from '../../src/agents/service.ts';
import { type DirectorySource, listDirectories } from '../../src/agents/store.ts';
import {
  type Agent,
  createAgent,
  createDeps,
  createRequest,
  quoted,
  signedHeaders,
  verifiedAgent,
} from '../agents/support/agent.ts';
import { createSqlite, type SqliteFile } from '../agents/support/sqlite.ts';
import { addAgent } from '../support/agents.ts';
import { noteStatements } from '../support/database.ts';
import { NOW } from '../support/make.ts';
import { started } from '../support/started.ts';
import { jwks, startDirectory } from './support/server.ts';

/** The background of a running server: what it fetches, when, and what a stranger can make it fetch. */

const server = started(() => startDirectory(300));
let file: SqliteFile;
let agent: Agent;
beforeAll(async () => {
  agent = createAgent(server.url);
});

let running: Agents | null = null;
let now = NOW;
afterEach(async () => {
  await running?.stop();
  await file.close();
  now = NOW;
});

async function start(
  openDiscovery: boolean,
  source: DirectorySource | null = null,
  limits: { readonly maxDiscovered?: number } = {},
): Promise<Agents> {
  file = await createSqlite();
  server.asked.length = 0;
  server.answer = jwks([agent.jwk]);
  if (source) await addAgent(file.database, newDirectory(server.url, source));
  running = await startAgents(file.database, {
    openDiscovery,
    clock: () => now,
    onFault: (error) => {
      throw error;
    },
    fetchOptions: server.options,
    interval: 20,
    ...limits,
  });
  return running;
}

function ask(agents: Agents, url = server.url): Promise<string | null> {
  const headers = signedHeaders(agent, { signatureAgent: `sig1=${quoted(url)}` });
  return verifiedAgent(createDeps([], agents), createRequest(headers), NOW);
}

/** Until the background has looked so often, and a few times more: what it asks for comes a little later. */
async function rounds(count: number): Promise<void> {
  let looked = 0;
  noteStatements(file.database.read, () => {
    looked += 1;
  });
  await vi.waitFor(() => expect(looked).toBeGreaterThan(count * 5), PATIENCE);
}
const PATIENCE = { timeout: 20_000, interval: 50 } as const;
const origin = (): string => new URL(server.url).origin;

describe('a directory on no list', () => {
  it('is never fetched while open discovery is off', async () => {
    const agents = await start(false);
    expect(await ask(agents)).toBeNull();
    await rounds(2);
    expect(await ask(agents)).toBeNull();
    expect(server.asked).toEqual([]);
    expect(await listDirectories(file.database)).toEqual([]);
  });

  it('is unverified first and known later when open discovery is on; ingest never waits for it', async () => {
    const agents = await start(true);
    let answerNow = (): void => {};
    server.answer = (response, request) => {
      answerNow = () => jwks([agent.jwk])(response, request);
    };
    expect(await ask(agents)).toBeNull();
    await vi.waitFor(() => expect(server.asked).toEqual([WELL_KNOWN_PATH]), PATIENCE);
    expect(await ask(agents)).toBeNull();
    answerNow();
    await vi.waitFor(async () => expect(await ask(agents)).toBe(origin()), PATIENCE);
    expect(server.asked).toEqual([WELL_KNOWN_PATH]);
    expect(await listDirectories(file.database)).toMatchObject([{ url: server.url, source: 'discovered' }]);
  });

  it('is fetched once, however many requests name it', async () => {
    const agents = await start(true);
    await Promise.all(Array.from({ length: 50 }, () => ask(agents)));
    await vi.waitFor(async () => expect(await ask(agents)).toBe(origin()), PATIENCE);
    expect(server.asked).toEqual([WELL_KNOWN_PATH]);
  });

  it('is not fetched for a request that says nothing in good order', async () => {
    const agents = await start(true);
    const headers = signedHeaders(agent, {
      signatureAgent: `sig1=${quoted(server.url)}`,
      params: { expires: null },
    });
    expect(await verifiedAgent(createDeps([], agents), createRequest(headers), NOW)).toBeNull();
    const foreign = signedHeaders(agent, {
      signatureAgent: `sig1=${quoted(server.url)}`,
      host: 'evil.example',
    });
    expect(await verifiedAgent(createDeps([], agents), createRequest(foreign), NOW)).toBeNull();
    await rounds(1);
    expect(server.asked).toEqual([]);
  });

  it('is one of its origin at a time, whatever paths and queries strangers name', async () => {
    const agents = await start(true);
    for (let i = 0; i < 50; i += 1) await ask(agents, `${origin()}/alice-${i}/jwks.json?${i}`);
    const last = `${origin()}/alice-49/jwks.json`;
    await vi.waitFor(async () => expect(await ask(agents, last)).toBe(last), PATIENCE);
    await ask(agents, `${origin()}/mallory/jwks.json`);
    await rounds(1);
    expect(server.asked).toEqual(['/alice-49/jwks.json']);
  });

  it.each([
    [25, [WELL_KNOWN_PATH]],
    [40, []],
  ])(
    'after %i other hosts of its site, where half of 60 places are open to all, is asked for: %j',
    async (count, paths) => {
      const agents = await start(true, null, { maxDiscovered: 60 });
      for (let i = 0; i < count; i += 1) await ask(agents, server.url.replace('127.0', `127.${i + 2}`));
      await ask(agents);
      await rounds(2);
      expect(server.asked).toEqual(paths);
      // Another site has room all the same.
      await ask(agents, `https://localhost:${server.port}/other`);
      await vi.waitFor(() => expect(server.asked).toEqual([...paths, '/other']), PATIENCE);
    },
  );

  it('is no other site at another port', async () => {
    const agents = await start(true, null, { maxDiscovered: 60 });
    for (let i = 0; i < 60; i += 1) await ask(agents, `https://localhost:${i + 1}`);
    await rounds(2);
    await ask(agents);
    await vi.waitFor(() => expect(server.asked).toEqual([WELL_KNOWN_PATH]), PATIENCE);
  });

  it('leaves nothing when it is none, and is not asked again at once', async () => {
    const agents = await start(true);
    server.answer = (response) => response.writeHead(404).end();
    await ask(agents);
    await vi.waitFor(() => expect(server.asked.length).toBe(1), PATIENCE);
    await rounds(1);
    await ask(agents);
    await rounds(1);
    expect(server.asked.length).toBe(1);
    expect(await listDirectories(file.database)).toEqual([]);
  });
});

describe('a directory on the list', () => {
  it('is fetched in the background from the start', async () => {
    const agents = await start(false, 'listed');
    await vi.waitFor(async () => expect(await ask(agents)).toBe(origin()), PATIENCE);
  });

  it('is refreshed in an hour, and sooner after a failure; its keys stay in use meanwhile', async () => {
    const agents = await start(false, 'listed');
    await vi.waitFor(async () => expect(await ask(agents)).toBe(origin()), PATIENCE);
    now = NOW + 59 * 60_000;
    await rounds(1);
    expect(server.asked).toHaveLength(1);

    server.answer = (response) => void response.writeHead(503).end();
    now = NOW + 60 * 60_000;
    await vi.waitFor(() => expect(server.asked).toHaveLength(2), PATIENCE);
    await rounds(1);
    expect(await ask(agents)).toBe(origin());
    expect(server.asked).toHaveLength(2);

    server.answer = jwks([createAgent().jwk]);
    now = NOW + 65 * 60_000;
    await vi.waitFor(async () => expect(await ask(agents)).toBeNull(), PATIENCE);
    expect(server.asked).toHaveLength(3);
  });

  it('whose keys are pinned is never fetched', async () => {
    const agents = await start(true, 'pinned');
    expect(await ask(agents)).toBeNull();
    await rounds(2);
    expect(server.asked).toEqual([]);
  });
});

describe('a server that hangs', () => {
  it('does not keep gpd from stopping', async () => {
    const agents = await start(false, 'listed');
    server.answer = () => {};
    await vi.waitFor(() => expect(server.asked).toHaveLength(1), PATIENCE);
    await agents.stop();
  });
});

it('directories that are due are fetched eight at a time', async () => {
  file = await createSqlite();
  server.asked.length = 0;
  let openCount = 0;
  let maxOpen = 0;
  server.answer = (response, request) => {
    openCount += 1;
    maxOpen = Math.max(maxOpen, openCount);
    response.once('close', () => {
      openCount -= 1;
    });
    setTimeout(() => jwks([])(response, request), 20);
  };
  for (let i = 0; i < 20; i += 1)
    await addAgent(file.database, newDirectory(`${origin()}/directory-${i}`, 'listed'));
  const onFault = (error: unknown): void => {
    throw error;
  };
  // A fetch that is given up on a busy machine would not be repeated by a clock that stands.
  const fetchOptions = { ...server.options, timeoutMs: 60_000 };
  const options = { openDiscovery: false, clock: () => now, onFault, fetchOptions };
  running = await startAgents(file.database, { ...options, interval: 20 });
  await vi.waitFor(() => expect(new Set(server.asked).size).toBe(20), PATIENCE);
  expect(maxOpen).toBeGreaterThan(1);
  expect(maxOpen).toBeLessThanOrEqual(8);
});
