import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { KID, OTHER } from '../../support/constants.ts';
import { expectError, SEEN_WITHIN } from '../../support/expect.ts';
import { ask, type Reply } from '../../support/http.ts';
import { type Api, bearer, PURPOSE, startApi, type Written } from './support/api.ts';
import { getBytes } from './support/bytes.ts';
import { leafOf, readBundle, readCheckpoint, readExport, treeHead } from './support/naive-log.ts';

/** The tenant's log over HTTP: what it holds, and that its parts agree. */

/** A full tile and some more. */
const COUNT = 260;
const people = Array.from({ length: COUNT }, (_, i) => `person-${i}`);

let api: Api;
let grants: readonly Written[];
beforeAll(async () => {
  api = await startApi();
  grants = await Promise.all(people.map((principalId) => api.write('grant', { principalId })));
});
afterAll(() => api.stop());

const tile = (path: string): Promise<{ status: number; bytes: Buffer }> =>
  getBytes(api.gpd.url, `/v1/ledger/tile/${path}`, bearer(api.keys.secret));

/** The next checkpoint that covers the whole log: one is signed at most once a second. */
async function checkpointOf(log: Api, size: number): Promise<string> {
  return vi.waitFor(async () => {
    const { text } = await log.get('/v1/ledger/checkpoint');
    expect(readCheckpoint(text).size).toBe(size);
    return text;
  }, SEEN_WITHIN);
}

describe('a new log', () => {
  it('begins with its genesis and the first purpose', async () => {
    const newApi = await startApi();
    const reply = await newApi.get('/v1/ledger/export');
    const vkey = (await newApi.get('/v1/ledger/vkey')).text;
    await newApi.stop();
    expect(reply.headers['content-type']).toMatch(/^application\/x-ndjson\b/);
    const lines = readExport(reply);
    const entries = lines.map(({ entry }) => JSON.parse(entry) as Record<string, unknown>);
    expect(entries.map(({ type }) => type)).toEqual(['ledger.genesis', 'purpose.defined']);
    expect(vkey).toMatch(/^[^+\s]+\+[0-9a-f]{8}\+[A-Za-z0-9+/=]+\n$/);
    const [origin] = vkey.split('+');
    expect(origin).toMatch(new RegExp(`/ledger/${KID}$`));
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(entries[0]).toEqual({
      v: 1,
      type: 'ledger.genesis',
      time,
      purpose: null,
      body: { key: vkey.trimEnd(), origin },
    });
    expect(entries[1]).toMatchObject({ v: 1, time, purpose: PURPOSE, body: { id: PURPOSE, gpc: 'opt-out' } });
  });
});

describe(`${COUNT} grants at once`, () => {
  it('take a seq each, without a gap', async () => {
    const seqs = grants.map(({ seq }) => seq).sort((a, b) => a - b);
    expect(seqs).toEqual(people.map((_, i) => i + 2));
    const lines = readExport(await api.get('/v1/ledger/export'));
    expect(lines.map(({ seq }) => seq)).toEqual(Array.from({ length: COUNT + 2 }, (_, i) => i));
    const leaves = lines.map(({ entry }) => leafOf(entry));
    expect(lines.map(({ hash }) => hash)).toEqual(leaves.map((leaf) => leaf.toString('hex')));
    for (const { seq, hash } of grants) expect(lines[seq]?.hash).toBe(hash);
  });

  it('are entries of one shape, which names nobody', async () => {
    const { text } = await api.get('/v1/ledger/export');
    expect(text).not.toContain('person-');
    const commitment = expect.stringMatching(/^[A-Za-z0-9_-]{43}$/);
    for (const { entry } of readExport({ text } as Reply).slice(2)) {
      const value = JSON.parse(entry) as Record<string, unknown>;
      expect(value).toEqual({
        v: 1,
        type: 'consent.granted',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
        purpose: PURPOSE,
        subject: commitment,
        body: commitment,
      });
      // RFC 8785: keys in their order, no space.
      expect(entry).toBe(JSON.stringify(value, Object.keys(value).sort()));
    }
  });

  it('the checkpoint is the root of what is exported', async () => {
    const leaves = readExport(await api.get('/v1/ledger/export')).map(({ entry }) => leafOf(entry));
    const head = readCheckpoint(await checkpointOf(api, COUNT + 2));
    expect(head.root).toBe(treeHead(leaves).toString('base64'));
    expect(head.origin).toBe((await api.get('/v1/ledger/vkey')).text.split('+')[0]);
  });

  it('tiles and bundles are the same log, full and partial', async () => {
    const lines = readExport(await api.get('/v1/ledger/export'));
    const all = lines.map(({ entry }) => leafOf(entry));
    const size = all.length;
    expect(size).toBe(COUNT + 2);
    const full = await tile('0/000');
    expect(full.bytes.equals(Buffer.concat(all.slice(0, 256)))).toBe(true);
    expect((await tile(`0/001.p/${size - 256}`)).bytes.equals(Buffer.concat(all.slice(256)))).toBe(true);
    expect((await tile('0/000.p/3')).bytes.equals(Buffer.concat(all.slice(0, 3)))).toBe(true);
    expect((await tile('1/000.p/1')).bytes.equals(treeHead(all.slice(0, 256)))).toBe(true);
    const texts = lines.map(({ entry }) => entry);
    expect(readBundle((await tile('entries/000')).bytes)).toEqual(texts.slice(0, 256));
    expect(readBundle((await tile(`entries/001.p/${size - 256}`)).bytes)).toEqual(texts.slice(256));
  });

  it.each([
    '0/001',
    '0/001.p/7',
    '0/000.p/0',
    '0/000.p/256',
    '0/000.p/03',
    '0/0',
    '0/0000',
    '0/x000/000',
    '00/000',
    '1/000',
    '1/000.p/2',
    '2/000.p/1',
    '64/000',
    '-1/000',
    'entries/001',
    'entry/000',
    '0/999',
    '0/x999/x999/x999/x999/x999/999',
    '0/..%2f..%2fexport',
    '',
  ])('there is no tile %j', async (path) => {
    expectError(await api.get(`/v1/ledger/tile/${path}`), 'not-found');
  });

  it('a tile of a private log is not for shared caches', async () => {
    // The address is the same for every tenant: a cache that keeps it would hand one tenant's log to another.
    for (const path of ['0/000', '0/000.p/3', 'entries/000']) {
      const reply = await api.get(`/v1/ledger/tile/${path}`);
      expect(reply.headers['content-type']).toBe('application/octet-stream');
      expect(reply.headers['cache-control']).not.toMatch(/public|s-maxage/);
    }
  });
});

describe('ledger.public', () => {
  const open = (kid: string, part: string): Promise<Reply> => ask(api.gpd.url, `/ledger/${kid}/${part}`);
  const PARTS = ['checkpoint', 'vkey', 'tile/0/000.p/1', 'tile/entries/000.p/1', 'export'];

  it('is off: nobody sees whether there is such a log', async () => {
    for (const part of PARTS) {
      const there = await open(KID, part);
      const unknown = await open('nobody', part);
      expectError(there, 'not-found');
      expect({ status: unknown.status, text: unknown.text }).toEqual({
        status: there.status,
        text: there.text,
      });
    }
  });

  it('opens the log of one tenant, to every origin, and closes it again', async () => {
    await api.gpd.json(['tenants', 'set', KID, 'ledger.public=true']);
    await vi.waitFor(async () => expect((await open(KID, 'vkey')).status).toBe(200), SEEN_WITHIN);
    for (const part of PARTS) {
      const reply = await open(KID, part);
      expect(reply.status).toBe(200);
      expect(reply.headers['access-control-allow-origin']).toBe('*');
      if (part !== 'checkpoint') expect(reply.text).toBe((await api.get(`/v1/ledger/${part}`)).text);
      expectError(await open(OTHER, part), 'not-found');
    }
    expect((await open(KID, 'tile/0/000')).headers['cache-control']).toMatch(/^public, max-age=\d{5,}/);
    for (const part of ['proofs/0', 'tile/0/999', 'state', '']) {
      expectError(await open(KID, part), 'not-found');
    }
    await api.gpd.json(['tenants', 'set', KID, 'ledger.public=false']);
    await vi.waitFor(async () => expectError(await open(KID, 'vkey'), 'not-found'), SEEN_WITHIN);
  });
});
