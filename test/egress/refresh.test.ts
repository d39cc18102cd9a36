import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DIRECTORY_FETCH, newDirectory, refreshDirectory } from '../../src/agents/service.ts';
import {
  type AgentDirectory,
  type DirectorySource,
  listDirectories,
  removeDirectory,
} from '../../src/agents/store.ts';
import { DAY } from '../../src/lib/clock.ts';
import { createAgent, rfcTestAgent } from '../agents/support/agent.ts';
import { createSqlite, type SqliteFile } from '../agents/support/sqlite.ts';
import { addAgent } from '../support/agents.ts';
import { NOW } from '../support/make.ts';
import { type Answer, type DirectoryServer, jwks, MEDIA_TYPE, startDirectory } from './support/server.ts';

/** One refresh of a directory: what is kept of it, and what it leaves alone. */

let server: DirectoryServer;
let file: SqliteFile;
beforeAll(async () => {
  server = await startDirectory(300);
  file = await createSqlite();
});
afterAll(async () => {
  await server.close();
  await file.close();
});

const NOBODY = { actorOf: () => undefined, at: NOW };
const [ONE, TWO] = [createAgent(), createAgent()];

async function refresh(before: AgentDirectory, now: number, answer: Answer): Promise<AgentDirectory> {
  server.answer = answer;
  // An operator lists it first.
  if (before.triedAt === null) await addAgent(file.database, before);
  const { directory, ok } = await refreshDirectory(file.database, before, () => now, server.options);
  expect(ok).toBe(directory.failure === null);
  const stored = (await listDirectories(file.database)).find(({ url }) => url === before.url);
  expect(stored).toEqual(directory);
  return directory;
}

const thumbprints = (directory: AgentDirectory): string[] => directory.keys.map((key) => key.thumbprint);
const emptyDirectory = (path: string): AgentDirectory => newDirectory(`${server.url}/${path}`, 'listed');

describe('a refresh that succeeds', () => {
  it('puts the keys of now in the place of those before: what is gone is revoked', async () => {
    const first = await refresh(emptyDirectory('replace'), NOW + 1, jwks([ONE.jwk, TWO.jwk]));
    expect(thumbprints(first)).toEqual([ONE.thumbprint, TWO.thumbprint]);
    expect(first).toMatchObject({ fetchedAt: NOW + 1, triedAt: NOW + 1, failure: null });
    const second = await refresh(first, NOW + 2, jwks([TWO.jwk]));
    expect(thumbprints(second)).toEqual([TWO.thumbprint]);
    const third = await refresh(second, NOW + 3, jwks([]));
    expect(third).toMatchObject({ keys: [], fetchedAt: NOW + 3, failure: null });
  });

  it('passes over keys of other kinds and the key that the RFC prints', async () => {
    const rsa = { kty: 'RSA', n: 'AQAB', e: 'AQAB' };
    const mixed = await refresh(emptyDirectory('mixed'), NOW, jwks([rsa, rfcTestAgent().jwk, ONE.jwk]));
    expect(thumbprints(mixed)).toEqual([ONE.thumbprint]);
    const printed = await refresh(mixed, NOW, jwks([rfcTestAgent().jwk]));
    expect(printed).toMatchObject({ keys: [], failure: null });
  });

  it('clears the failure of the one before', async () => {
    const failed = await refresh(
      emptyDirectory('cleared'),
      NOW,
      (response) => void response.writeHead(503).end(),
    );
    expect(failed.failure).toBe('it answered 503 and not 200');
    expect(await refresh(failed, NOW + 5, jwks([ONE.jwk]))).toMatchObject({
      failure: null,
      fetchedAt: NOW + 5,
    });
  });
});

describe('a refresh that fails', () => {
  const body = (type: string, text: string) => (response: ServerResponse) =>
    void response.writeHead(200, { 'content-type': type }).end(text);
  const failures: readonly (readonly [string, Answer, string])[] = [
    ['an error', (response) => void response.writeHead(500).end(), 'it answered 500 and not 200'],
    ['a page of HTML', body('text/html', '<p>'), `its media type is not ${MEDIA_TYPE}`],
    ['broken JSON', body(MEDIA_TYPE, '{'), 'it cannot be read'],
    ['no JWKS', body(MEDIA_TYPE, '[]'), 'it is neither a JWKS of at most 32 keys nor a JWK'],
    [
      'too many keys',
      jwks(Array.from({ length: 33 }, () => ONE.jwk)),
      'it is neither a JWKS of at most 32 keys nor a JWK',
    ],
    ['silence', () => {}, 'it did not answer in time'],
    ['a closed door', (response) => void response.socket?.destroy(), 'it cannot be reached (ECONNRESET)'],
  ];
  it.each(failures)(
    'by %s keeps the keys of the last good one and says why',
    async (name, answer, failure) => {
      const good = await refresh(emptyDirectory(name.replaceAll(' ', '-')), NOW + 1, jwks([ONE.jwk]));
      const failedRefresh = await refresh(good, NOW + 2, answer);
      expect(failedRefresh).toEqual({ ...good, triedAt: NOW + 2, failure: failure });
    },
  );

  it('on a first visit leaves a directory without keys', async () => {
    const directory = await refresh(
      emptyDirectory('first'),
      NOW,
      (response) => void response.writeHead(404).end(),
    );
    expect(directory).toMatchObject({ keys: [], fetchedAt: null, triedAt: NOW });
  });
});

describe('two refreshes at a time', () => {
  interface Fetch {
    readonly end: (keys: readonly unknown[]) => Promise<void>;
  }

  /** A fetch that has begun, and is answered when the test says so. */
  async function begin(before: AgentDirectory, clock: () => number): Promise<Fetch> {
    const request = new Promise<ServerResponse>((resolve) => {
      server.answer = resolve;
    });
    const done = refreshDirectory(file.database, before, clock, server.options);
    const response = await request;
    return {
      async end(keys) {
        jwks(keys)(response, response.req);
        await done;
      },
    };
  }

  const stored = async (url: string): Promise<AgentDirectory | undefined> =>
    (await listDirectories(file.database)).find((directory) => directory.url === url);
  async function listed(path: string, source: DirectorySource = 'listed'): Promise<AgentDirectory> {
    const directory = newDirectory(`${server.url}/${path}`, source);
    await addAgent(file.database, directory);
    return directory;
  }
  const keysOf = async (url: string): Promise<string[]> =>
    thumbprints((await stored(url)) ?? emptyDirectory(''));

  it('the one that began later counts, whichever ends last', async () => {
    const directory = await listed('race');
    const slow = await begin(directory, () => NOW + 1000);
    const quick = await begin(directory, () => NOW + 2000);
    await quick.end([TWO.jwk]);
    await slow.end([ONE.jwk, TWO.jwk]);
    expect(await keysOf(directory.url)).toEqual([TWO.thumbprint]);
    const next = await begin(directory, () => NOW + 3000);
    await next.end([ONE.jwk]);
    expect(await keysOf(directory.url)).toEqual([ONE.thumbprint]);
  });

  it('one that began by a clock that was ahead does not stand for ever', async () => {
    const directory = await listed('ahead');
    const ahead = await begin(directory, () => NOW + DAY);
    await ahead.end([ONE.jwk]);
    const right = await begin(directory, () => NOW + 2000);
    await right.end([TWO.jwk]);
    expect(await keysOf(directory.url)).toEqual([TWO.thumbprint]);
  });

  it.each<DirectorySource>(['listed', 'discovered'])(
    'a %s directory that was removed meanwhile is not stored again',
    async (source) => {
      const directory = { ...(await listed(`removed-${source}`, source)), triedAt: NOW };
      const under = await begin(directory, () => NOW + 1000);
      expect(await removeDirectory(file.database, directory.url, NOBODY)).toBe(true);
      await under.end([ONE.jwk]);
      expect(await stored(directory.url)).toBeUndefined();
    },
  );

  it('one that was pinned meanwhile keeps its keys', async () => {
    const directory = await listed('pinned');
    const under = await begin(directory, () => NOW + 1000);
    const pinned = { ...directory, source: 'pinned' as const };
    await addAgent(file.database, pinned);
    await under.end([ONE.jwk]);
    expect(await stored(directory.url)).toEqual(pinned);
  });

  it('what open discovery met is stored', async () => {
    const met = newDirectory(`${server.url}/met`, 'discovered');
    const under = await begin(met, () => NOW + 1000);
    await under.end([ONE.jwk]);
    expect(await keysOf(met.url)).toEqual([ONE.thumbprint]);
  });
});

describe('the limits of production', () => {
  it('are 3 s, 64 KiB, the right media type, and public addresses', async () => {
    expect(DIRECTORY_FETCH).toEqual({ mediaType: MEDIA_TYPE, maxBytes: 65_536, timeoutMs: 3000 });
    server.answer = jwks([ONE.jwk]);
    const before = server.asked.length;
    const { directory, ok } = await refreshDirectory(file.database, emptyDirectory('guarded'), () => NOW);
    expect({ ok, failure: directory.failure }).toEqual({ ok: false, failure: 'the address is not public' });
    expect(server.asked).toHaveLength(before);
  });
});
