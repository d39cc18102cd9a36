import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { readJwks } from '../../src/agents/directory.ts';
import { type Agents, loadAgentKeys, newDirectory, startAgents } from '../../src/agents/service.ts';
import { verifyBotAuth } from '../../src/agents/verify.ts';
import { addAgent } from '../support/agents.ts';
import { NOW } from '../support/make.ts';
import {
  AGENT_ORIGIN,
  type Agent,
  createAgent,
  createDeps,
  createRequest,
  NOW_SECONDS,
  signedHeaders,
} from './support/agent.ts';
import { createSqlite, type SqliteFile } from './support/sqlite.ts';

/** From a stored directory to a verdict: validity, rotation and revocation of keys. */

const OLD = createAgent();
const NEW = createAgent();

let file: SqliteFile;
beforeAll(async () => {
  file = await createSqlite();
});
afterAll(() => file.close());

let agents: Agents | null = null;
afterEach(async () => {
  await agents?.stop();
  agents = null;
});

type ListedKey = Readonly<Record<string, unknown>>;

async function pin(...keys: readonly object[]): Promise<void> {
  const read = (await readJwks({ keys })) ?? [];
  await addAgent(file.database, { ...newDirectory(OLD.directory, 'pinned'), keys: read });
}

async function start(): Promise<Agents> {
  agents = await startAgents(file.database, {
    openDiscovery: false,
    clock: () => NOW,
    onFault: (error) => {
      throw error;
    },
  });
  return agents;
}

function verdict(agent: Agent, { findKey }: Pick<Agents, 'findKey'>): Promise<string | null> {
  return verifyBotAuth(createDeps([], { findKey }), createRequest(signedHeaders(agent)), NOW);
}

describe('a key of a directory', () => {
  it.each<readonly [string, ListedKey, boolean]>([
    ['is good without a validity', {}, true],
    ['is good from nbf on', { nbf: NOW_SECONDS }, true],
    ['is not good before nbf', { nbf: NOW_SECONDS + 1 }, false],
    ['is good until exp', { exp: NOW_SECONDS + 1 }, true],
    ['is not good at exp', { exp: NOW_SECONDS }, false],
    ['is good between both', { nbf: NOW_SECONDS - 60, exp: NOW_SECONDS + 60 }, true],
    ['is not good when it ends before it begins', { nbf: NOW_SECONDS + 60, exp: NOW_SECONDS - 60 }, false],
    ['is good between both in milliseconds', { nbf: NOW - 60_000, exp: NOW + 60_000 }, true],
    ['is not good at exp in milliseconds', { exp: NOW }, false],
    ['is not good before nbf in milliseconds', { nbf: NOW + 1000 }, false],
    ["is found by its thumbprint beside another's kid", { kid: NEW.thumbprint }, true],
  ])('%s', async (_name, over, good) => {
    await pin({ ...OLD.jwk, ...over });
    const findKey = await loadAgentKeys(file.database);
    expect(await verdict(OLD, { findKey })).toBe(good ? AGENT_ORIGIN : null);
    expect(await verdict(NEW, { findKey })).toBeNull();
  });

  it('that calls itself by the thumbprint of another is not taken for it', async () => {
    await pin({ ...OLD.jwk, kid: NEW.thumbprint });
    const findKey = await loadAgentKeys(file.database);
    expect(findKey(OLD.directory, NEW.thumbprint, NOW_SECONDS)).toBeNull();
    expect(findKey(OLD.directory, OLD.thumbprint, NOW_SECONDS)).not.toBeNull();
  });
});

describe('a running server', () => {
  it('follows a rotation within seconds: the same agent, another key, the old one revoked', async () => {
    await pin(OLD.jwk);
    const running = await start();
    expect(await verdict(OLD, running)).toBe(AGENT_ORIGIN);
    expect(await verdict(NEW, running)).toBeNull();

    await pin(OLD.jwk, NEW.jwk);
    await vi.waitFor(async () => expect(await verdict(NEW, running)).toBe(AGENT_ORIGIN), { timeout: 20_000 });
    expect(await verdict(OLD, running)).toBe(AGENT_ORIGIN);

    await pin(NEW.jwk);
    await vi.waitFor(async () => expect(await verdict(OLD, running)).toBeNull(), { timeout: 20_000 });
    expect(await verdict(NEW, running)).toBe(AGENT_ORIGIN);
  });

  it('forgets an agent whose directory is empty', async () => {
    await pin();
    expect(await verdict(NEW, await start())).toBeNull();
  });

  it('starts with whatever points a directory listed', async () => {
    await pin({ ...OLD.jwk, x: '_'.repeat(43) }, { ...OLD.jwk, x: 'A'.repeat(43) }, OLD.jwk);
    expect(await verdict(OLD, await start())).toBe(AGENT_ORIGIN);
  });
});
